"""Attacks on a real daemon: nothing comes out, nothing outside changes, each request has one answer, and it lives on.

A sample by a seed that is printed; `python -m tests.hostile` makes thousands, and measures what others notice.
"""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Callable, Iterator

import pytest

from protocol.methods import COMMANDS, REQUESTS
from tests.hostile.arena import Arena
from tests.hostile.asks import HOLE, Place, places
from tests.hostile.figures import assaulted
from tests.hostile.guard import Leak, Wrong, traces
from tests.hostile.table import KINDS, Kind
from tests.hostile.talker import must_be_listed

FAILED: list[str] = []


@pytest.fixture(scope="module")
def seed() -> int:
    return random.SystemRandom().randrange(2**32)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Arena]:
    """One daemon for all of them: what one attack leaves behind is the next one's surroundings."""
    place = Arena(tmp_path_factory.mktemp("hostile"), random.Random(seed), quick=True)
    try:
        yield place
        if not FAILED:
            place.must_have_let_go()
    finally:
        place.end()


@pytest.mark.rule("hostile.nothing-from-outside-comes-out")
@pytest.mark.rule("hostile.nothing-outside-is-changed")
@pytest.mark.rule("hostile.one-answer-from-the-list")
@pytest.mark.rule("hostile.the-daemon-lives-on")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.quick], ids=lambda kind: kind.name)
def test_what_must_hold_holds(arena: Arena, seed: int, kind: Kind) -> None:
    print(f"seed {seed}")
    wrong = [fault for number in range(kind.quick) for fault in assaulted(arena, kind, seed, number)]
    FAILED.extend(wrong)
    assert not wrong, "\n".join(wrong)


def test_every_method_and_command_that_takes_a_text_is_attacked() -> None:
    with_text = {method for method, row in REQUESTS.items() if "'string'" in str(row.params.model_json_schema())}
    with_text.remove("timeline/render")  # its texts are words of a closed list
    assert {place.method for place in places()} == with_text | {"workspace/executeCommand"}
    commands = {place.params["command"] for place in places() if is_command(place)}
    assert commands == {name for name, row in COMMANDS.items() if "'string'" in str(row.params.model_json_schema())}


def test_most_places_would_take_an_honest_text() -> None:
    taken = [place for place in places() if not is_command(place) and is_taken(place)]
    assert len(taken) >= 0.8 * len(places()), "params that are refused before anybody reads the text prove nothing"


def is_command(place: Place) -> bool:
    return place.method == "workspace/executeCommand"


def is_taken(place: Place) -> bool:
    method, params = place.filled("turn_0", turn="turn_0", call="tc_0")
    try:
        REQUESTS[method].params.model_validate(params)
    except ValueError:
        return False
    return HOLE not in str(params)


@pytest.mark.parametrize("dress", [bytes, base64.b64encode, lambda secret: hashlib.sha256(secret).hexdigest().encode()])
def test_the_watch_for_canaries_would_see_one(dress: Callable[[bytes], bytes]) -> None:
    secret = b"CANARY0123456789abcdef01234567" * 40
    said = b'{"text":"before ' + dress(secret) + b' behind"}'
    assert any(needle in said for needle in traces(secret))


def test_the_guard_says_what_leaked(arena: Arena) -> None:
    with pytest.raises(Leak):
        arena.guard.must_not_hold((arena.guard.outside / "secret.txt").read_bytes(), arena.guard.needles)


def test_a_change_outside_would_be_seen(arena: Arena) -> None:
    secret = arena.guard.outside / "secret.txt"
    before = secret.read_bytes()
    secret.write_bytes(before + b"x")
    try:
        with pytest.raises(Wrong, match=r"secret\.txt"):
            arena.guard.must_be_untouched()
    finally:
        secret.write_bytes(before)
        arena.guard.before = arena.guard.census()


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32603, "message": "", "data": {"incident": "1"}},
        {"code": -32803, "message": "", "data": {"kind": "a new one"}},
        {"code": 1, "message": ""},
    ],
)
def test_an_error_that_is_on_no_list_is_found(error: dict[str, object]) -> None:
    with pytest.raises(Wrong):
        must_be_listed({"id": 1, "error": error})


def test_an_honest_error_is_none() -> None:
    must_be_listed({"id": 1, "error": {"code": -32803, "message": "", "data": {"kind": "not_found"}}})
