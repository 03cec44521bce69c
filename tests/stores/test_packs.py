"""Small bytes share a file, and come back, go and stay gone as if each had its own."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.core.errors import NotFound
from sidecar.stores import packs as module
from sidecar.stores.packs import Packs

PROJECT = Path(__file__).resolve().parents[2]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def add(packs: Packs, *bodies: bytes) -> None:
    for data in bodies:
        packs.add(sha(data), data)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "packs")


def on_disk(folder: str) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(Path(folder).iterdir()))


def test_what_was_added_is_found_by_the_next_as_well(folder: str) -> None:
    bodies = [b"", b"one", bytes(70_000), b"\xff" * 40]
    add(packs := Packs(folder), *bodies)
    for one in (packs, Packs(folder)):
        assert [one.read(sha(data)) for data in bodies] == bodies
        assert (one.total, one.sizes()) == (70_043, {sha(data): len(data) for data in bodies})
    assert [path.stat().st_mode & 0o777 for path in Path(folder).iterdir()] == [0o600]


def test_looking_makes_nothing(folder: str) -> None:
    packs = Packs(folder)
    assert (packs.size(sha(b"x")), packs.drop(sha(b"x")), packs.sizes()) == (None, None, {})
    assert not os.path.exists(folder)
    with pytest.raises(NotFound):
        packs.read(sha(b"x"))


def test_known_bytes_are_added_once(folder: str) -> None:
    add(packs := Packs(folder), b"some bytes", b"some bytes")
    assert on_disk(folder).count(b"some bytes") == 1
    assert packs.total == 10


def test_what_was_dropped_leaves_no_trace_and_its_neighbours_alone(folder: str) -> None:
    bodies = [b"first secret", b"second secret", b"third secret"]
    add(packs := Packs(folder), *bodies)
    assert packs.drop(sha(bodies[1])) == 13
    assert b"second secret" not in on_disk(folder)
    assert bytes.fromhex(sha(bodies[1])) not in on_disk(folder)
    for one in (packs, Packs(folder)):
        assert [one.read(sha(bodies[at])) for at in (0, 2)] == [bodies[0], bodies[2]]
        assert (one.size(sha(bodies[1])), one.total) == (None, 24)
    add(packs, bodies[1])
    assert Packs(folder).read(sha(bodies[1])) == bodies[1]


@pytest.mark.rule("cli.erase-forgets-a-turn-or-conversation")
def test_what_a_power_cut_left_of_what_was_dropped_is_scrubbed(folder: str) -> None:
    """Two writes that nobody synced reach the disk in any order: the mark may be there and the bytes as well."""
    packs = Packs(folder)
    kept, secret, torn = b"kept " * 20, b"secret " * 20, b"torn secret " * 9
    for data in (kept, secret, kept * 2):
        packs.add(sha(data), data)
    packs.drop(sha(secret))
    packs.close()
    path = Path(folder, "00000001")
    whole = bytearray(path.read_bytes())
    at = whole.index(bytes(len(secret)))
    whole[at : at + len(secret)] = secret
    path.write_bytes(bytes(whole) + bytes.fromhex(sha(torn)) + len(torn).to_bytes(4) + torn[:-1])
    woken = Packs(folder)
    woken.scrub()
    assert b"secret" not in path.read_bytes()
    assert (woken.read(sha(kept)), woken.read(sha(kept * 2))) == (kept, kept * 2)
    assert Packs(folder).sizes() == {sha(kept): len(kept), sha(kept * 2): 2 * len(kept)}


def test_a_pack_without_any_is_removed(folder: str) -> None:
    add(Packs(folder), b"one", b"two")
    add(other := Packs(folder), b"three")
    for data in (b"one", b"two"):
        other.drop(sha(data))
    assert os.listdir(folder) == ["00000002"]
    other.close()
    other.drop(sha(b"three"))
    assert os.listdir(folder) == []
    add(other, b"four")
    assert Packs(folder).sizes() == {sha(b"four"): 4}


def half_dropped(folder: str) -> tuple[Packs, list[bytes]]:
    """Packs of which the first is on the point of being mostly dropped, and what is left in it."""
    bodies = [b"%d of ten bodies" % at for at in range(10)]
    add(Packs(folder), *bodies)
    packs = Packs(folder)
    for data in bodies[:5]:
        packs.drop(sha(data))
    return packs, bodies[5:]


def test_what_is_left_of_a_pack_moves_and_the_pack_goes(folder: str) -> None:
    packs, left = half_dropped(folder)
    assert os.listdir(folder) == ["00000001"]
    packs.drop(sha(left.pop()))
    assert os.listdir(folder) == ["00000002"]
    for one in (packs, Packs(folder)):
        assert ([one.read(sha(data)) for data in left], one.total) == (left, 60)
    for data in left:
        packs.drop(sha(data))
    assert (packs.total, packs.sizes(), Packs(folder).sizes()) == (0, {}, {})


def test_nothing_goes_before_its_copy_is_on_the_disk(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packs, left = half_dropped(folder)

    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(module.kernel, "syncfs", broken)
        packs.drop(sha(left.pop()))
    assert sorted(os.listdir(folder)) == ["00000001", "00000002"]
    for one in (packs, Packs(folder)):
        assert [one.read(sha(data)) for data in left] == left
    packs.drop(sha(left.pop()))
    assert os.listdir(folder) == ["00000002"]
    assert (packs.total, Packs(folder).sizes()) == (45, {sha(data): 15 for data in left})
    for data in left:
        packs.drop(sha(data))
    assert b"bodies" not in on_disk(folder)


def test_a_disk_without_room_to_move_keeps_what_is_left(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packs, left = half_dropped(folder)
    write = os.pwrite

    def full(fd: int, data: bytes, at: int) -> int:
        if len(data) > 36:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data, at)

    with monkeypatch.context() as patched:
        patched.setattr(module.os, "pwrite", full)
        packs.drop(sha(left.pop()))
    for one in (packs, Packs(folder)):
        assert ([one.read(sha(data)) for data in left], one.total) == (left, 60)


def test_a_full_pack_is_followed_by_the_next(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACK_BYTES", 100)
    bodies = [bytes([letter]) * 50 for letter in range(10)]
    add(Packs(folder), *bodies)
    assert len(os.listdir(folder)) == 5
    assert [Packs(folder).read(sha(data)) for data in bodies] == bodies


def test_nobody_writes_to_a_pack_of_another_process(folder: str) -> None:
    add(Packs(folder), b"one")
    before = (Path(folder) / "00000001").read_bytes()
    add(Packs(folder), b"two")
    assert (Path(folder) / "00000001").read_bytes() == before


@pytest.mark.parametrize("seed", range(20))
def test_a_pack_that_ends_anywhere_holds_what_is_whole(folder: str, seed: int) -> None:
    chance = random.Random(seed)
    bodies = [chance.randbytes(chance.choice((0, 5, 500, 5000))) + bytes([at]) for at in range(20)]
    add(Packs(folder), *bodies)
    path = Path(folder) / "00000001"
    whole = path.read_bytes()
    cut = chance.randrange(len(whole))
    # A kill in the middle of a write leaves less; a power cut may leave zeros that nobody wrote.
    path.write_bytes(whole[:cut] + bytes(chance.choice((0, 1, 30, 4096))))
    after = Packs(folder)
    end = 0
    for data in bodies:
        end += 36 + len(data)
        if end <= cut:
            assert after.read(sha(data)) == data
        elif after.size(sha(data)) is not None:
            assert len(after.read(sha(data))) == len(data)  # and its hash tells
    add(after, b"new")
    assert Packs(folder).read(sha(b"new")) == b"new"


@pytest.mark.parametrize("seed", range(20))
def test_a_pack_that_is_damaged_anywhere_is_read_and_written_on(folder: str, seed: int) -> None:
    chance = random.Random(seed)
    bodies = [chance.randbytes(chance.choice((0, 5, 500, 5000))) + bytes([at]) for at in range(20)]
    add(Packs(folder), *bodies)
    path = Path(folder) / "00000001"
    damaged = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(damaged))
        match chance.randrange(3):
            case 0:
                damaged[at] ^= 1 << chance.randrange(8)
            case 1:
                damaged[at : at + 40] = bytes(40)
            case _:
                del damaged[at : at + chance.randrange(1, 40)]
    path.write_bytes(damaged)
    after = Packs(folder)
    for data in bodies:  # whether they are the bytes of their hash is for the reader to see
        if after.size(sha(data)) is not None:
            after.read(sha(data))
    for data in bodies[::2]:
        after.drop(sha(data))
    add(after, *bodies)
    again = Packs(folder)
    assert all(again.read(sha(data)) == data for data in bodies[::2])
    assert again.total == sum(again.sizes().values())


def test_a_write_that_failed_half_way_costs_its_bytes_alone(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    add(packs := Packs(folder), b"before")
    write = os.pwrite
    with monkeypatch.context() as patched:
        patched.setattr(module.os, "pwrite", lambda fd, data, at: write(fd, data[:20], at))
        with pytest.raises(OSError):
            add(packs, b"lost")
    assert packs.size(sha(b"lost")) is None
    add(packs, b"after", b"lost")
    assert Packs(folder).sizes() == {sha(data): len(data) for data in (b"before", b"after", b"lost")}


def test_what_a_power_cut_brought_back_goes_with_what_was_kept_anew(folder: str) -> None:
    add(packs := Packs(folder), b"secret", b"other")
    brought_back = (Path(folder) / "00000001").read_bytes()
    packs.drop(sha(b"secret"))
    add(Packs(folder), b"secret")
    (Path(folder) / "00000001").write_bytes(brought_back)
    after = Packs(folder)
    assert after.read(sha(b"secret")) == b"secret"
    after.drop(sha(b"secret"))
    assert b"secret" not in on_disk(folder)
    assert (after.total, Packs(folder).sizes()) == (5, {sha(b"other"): 5})


def test_links_and_strange_names_are_no_packs(folder: str, tmp_path: Path) -> None:
    add(Packs(str(tmp_path / "elsewhere")), b"outside")
    os.mkdir(folder)
    os.symlink(tmp_path / "elsewhere" / "00000001", os.path.join(folder, "00000001"))
    Path(folder, "notes").write_text("x")
    packs = Packs(folder)
    assert packs.sizes() == {}
    add(packs, b"mine")
    assert sorted(os.listdir(folder)) == ["00000001", "00000002", "notes"]


KILLED = """
import hashlib, sys
from sidecar.stores.packs import Packs
packs = Packs(sys.argv[1])
for at in range(10**9):
    data = (b"%d " % at) * 2000
    packs.add(hashlib.sha256(data).hexdigest(), data)
    print(at, flush=True)
"""


def test_a_kill_loses_nothing_that_was_added(folder: str) -> None:
    dying = subprocess.Popen([sys.executable, "-c", KILLED, folder], cwd=PROJECT, stdout=subprocess.PIPE)
    assert dying.stdout is not None
    for _ in range(300):
        dying.stdout.readline()
    dying.kill()
    told = 300 + len(dying.stdout.read().splitlines())
    dying.wait()
    dying.stdout.close()
    packs = Packs(folder)
    for at in range(told):
        data = (b"%d " % at) * 2000
        assert packs.read(sha(data)) == data
