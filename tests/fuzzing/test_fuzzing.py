"""The inputs that are kept, every day: none of them makes a sentence untrue that a target says."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzzing import corpus, figures, ledger
from tests.fuzzing.draw import PARTS, Draw, cuts, pieces
from tests.fuzzing.rotation import Rotation
from tests.fuzzing.slot import NEEDED, Done, NotInstalled, Slot, memory
from tests.fuzzing.table import NAMES, all_targets
from tests.fuzzing.target import Target

KEPT_BYTES = 100_000  # of all pages together
CHANCES, SEED = 40, 8
TARGETS = all_targets()
each_target = pytest.mark.parametrize("target", TARGETS.values(), ids=NAMES)


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", memory())


@each_target
@pytest.mark.rule("fuzz.what-is-kept-is-tried-daily")
def test_what_is_said_of_all_inputs_is_true_of_those_that_are_kept(target: Target) -> None:
    for one in dict.fromkeys((*target.seeds(), *corpus.kept(target.name), *corpus.findings(target.name))):
        target.check(one)


@each_target
@pytest.mark.rule("fuzz.what-is-kept-is-tried-daily")
def test_it_is_true_of_what_chance_makes_of_them(target: Target) -> None:
    chance = random.Random(SEED)
    known = [*target.seeds(), *corpus.kept(target.name)]
    for _ in range(CHANCES):
        one = spoilt(known, target.words, chance)[: target.longest]
        try:
            target.check(one)
        except Exception as fault:
            raise AssertionError(f"seed {SEED}: {one!r}") from fault


def spoilt(known: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> bytes:
    """One of the inputs after a few changes; without any knowledge of what they reach."""
    one = bytearray(chance.choice(known))
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(one) + 1)
        match chance.randrange(5):
            case 0:
                one[at:at] = chance.choice(words) if words else chance.randbytes(3)
            case 1:
                del one[at : at + chance.randrange(1, 9)]
            case 2:
                one[at : at + 1] = chance.randbytes(1)
            case 3:
                other = chance.choice(known)
                one[at:at] = other[chance.randrange(len(other) + 1) :][: chance.randrange(40)]
            case _:
                one += chance.randbytes(1)  # where choices are taken from
    return bytes(one)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(corpus.SETTING, str(tmp_path))
    if find_spec("atheris") is None:
        assert not os.environ.get("CI"), NEEDED
        pytest.skip(NEEDED)
    return tmp_path


@pytest.mark.rule("fuzz.led-by-what-is-reached")
def test_the_fuzzer_runs_and_keeps_its_totals(cache: Path) -> None:
    told: list[Done] = []
    target = TARGETS["framing"]
    Rotation([target], seconds=1, seed=7).run(lambda _, __, done: told.append(done))
    (done,) = told
    assert done.faults == {}
    assert done.executions > len(list(target.seeds()))
    assert done.edges > 50
    assert ledger.totals()["framing"].executions == done.executions
    assert any((cache / "corpus" / "framing").iterdir())
    assert "framing" in figures.table()


@pytest.mark.rule("fuzz.led-by-what-is-reached")
def test_a_slot_that_is_stopped_says_what_it_did(cache: Path) -> None:
    slot = Slot(TARGETS["paths"], seconds=600, seed=1)
    slot.stop()
    assert slot.wait().faults == {}


def test_without_the_fuzzer_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzzing.slot.find_spec", lambda _: None)
    with pytest.raises(NotInstalled, match="pip install"):
        Slot(TARGETS["framing"], seconds=1, seed=1)


@pytest.mark.rule("fuzz.what-is-kept-is-tried-daily")
def test_what_is_kept_is_small_and_readable() -> None:
    pages = sorted(corpus.KEPT.iterdir())
    assert sum(page.stat().st_size for page in pages) <= KEPT_BYTES
    assert {page.name.partition(".")[0] for page in pages} <= set(TARGETS)
    assert {target.name for target in TARGETS.values() if corpus.kept(target.name)} == set(TARGETS)
    assert all(page.read_bytes().isascii() for page in pages)


def test_a_finding_that_is_mended_is_open_no_more(cache: Path) -> None:
    target = Target("framing", "it is short", lambda data: _refuse(len(data) > 3), (), lambda: [b""])
    faults = {"a": "b'long enough'\n\nsaid", "b": "b'ok'\n\nsaid"}
    ledger.add(target, Done(1.0, 5, 9, 1.5, "b'x'", faults), seed=3)
    ledger.add(target, Done(1.0, 5, 7, 0.0, "", {"a": "b'long'\n\nshorter"}), seed=4)
    assert ledger.open_findings(target) == {"a": "b'long'\n\nshorter"}
    assert ledger.totals()["framing"] == ledger.Total(2.0, 10, 9, 4, 1.5, "b'x'")


def _refuse(wrong: bool) -> None:
    assert not wrong


def test_an_input_is_read_from_both_ends() -> None:
    draw = Draw(b"one\xfftwo\x01\x02\x03")
    assert (draw.number(255), draw.number(2**16 - 1), draw.flag(), draw.pick("ab")) == (3, 0x0102, True, "b")
    assert draw.rest() == b"one\xfft"
    assert draw.texts(3) == ["one", "t", ""]
    assert Draw(b"").number(9) == 0
    assert Draw(b"\x80").text() == "\udc80"
    assert PARTS == b"\xff"


def test_a_stream_in_pieces_is_the_stream() -> None:
    assert cuts(Draw(b"\x01\x05\x02"), 9) == [1, 5]
    assert pieces(b"abcdef", [1, 5]) == [b"a", b"bcde", b"f"]
