"""System calls that Python has no name for: openat2, renameat2, syncfs, sync_file_range, and statfs with its
type of file system."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_libc = ctypes.CDLL(None, use_errno=True)

# The same number on every architecture whose table was unified before Linux 5.6, which is all that Python runs on.
_SYS_OPENAT2 = 437
_RESOLVE = 0x08 | 0x04 | 0x02  # BENEATH, NO_SYMLINKS, NO_MAGICLINKS
_AT_ONCE = 0x20 | 0x01  # CACHED, NO_XDEV: another disk may be one that lets us wait
_TRIES = 128

NOREPLACE, EXCHANGE = 1, 2
_SYNC_FILE_RANGE_WRITE = 2
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
ARENAS, LARGE_BYTES = 2, 1 << 20

_STATFS_BYTES = 256  # the struct is 120 bytes on 64-bit Linux; its first word is the type


def trim() -> None:
    """Give back to the system what this process has asked for and uses no more, where the C library can."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


def hold_little() -> None:
    """Let the C library hold on to less of what is free. Nothing happens where that is unknown.

    By itself it opens eight arenas for each core, in which our fifty threads leave their holes, and once a large text
    was freed it no longer gives texts of that size back to the system.
    """
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_ARENA_MAX, ARENAS)
        _libc.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def openat2(folder: int, below: bytes, flags: int, *, at_once: bool = False) -> int:
    """Open `below` without leaving `folder` and without following a link anywhere. Raises OSError.

    ELOOP tells of a link, EXDEV of an attempt to leave. With `at_once`, EAGAIN says that a name on the way has to come
    from the disk first, and EXDEV also that another disk is mounted there; a kernel before 5.12 says EINVAL.
    """
    if b"\0" in below:
        raise ValueError("a path holds no NUL")  # C would end the path there and open something else
    how = _How(flags | os.O_CLOEXEC, 0, _RESOLVE | _AT_ONCE if at_once else _RESOLVE)
    for _ in range(1 if at_once else _TRIES):
        opened = _libc.syscall(
            ctypes.c_long(_SYS_OPENAT2),
            ctypes.c_int(folder),
            ctypes.c_char_p(below),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if opened >= 0:
            return opened
        # EAGAIN means that a rename somewhere raced with the walk; the next try is likely to see a quiet tree.
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    raise _failure(below)


def rename(source: tuple[int, bytes], target: tuple[int, bytes], flags: int) -> None:
    """renameat2 with `NOREPLACE` or `EXCHANGE`; names are below the folders given with them. Raises OSError."""
    folder, name = source
    other_folder, other_name = target
    done = _libc.renameat2(
        ctypes.c_int(folder), ctypes.c_char_p(name), ctypes.c_int(other_folder), ctypes.c_char_p(other_name),
        ctypes.c_uint(flags),
    )  # fmt: skip
    if done != 0:
        raise _failure(other_name)


def syncfs(fd: int) -> None:
    """Bring everything written to the file system of `fd` to the disk. Raises OSError."""
    if _libc.syncfs(ctypes.c_int(fd)) != 0:
        raise _failure(b"syncfs")


def start_writing(fd: int) -> None:
    """Have what was written to a file so far begin its way to the disk, so that a sync has less to wait for."""
    _libc.sync_file_range(ctypes.c_int(fd), ctypes.c_int64(0), ctypes.c_int64(0), ctypes.c_uint(_SYNC_FILE_RANGE_WRITE))


def file_system_type(fd: int) -> int:
    """The magic number of the file system of `fd` (statfs(2) lists them). Raises OSError."""
    answer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _libc.fstatfs(ctypes.c_int(fd), answer) != 0:
        raise _failure(b"fstatfs")
    return int.from_bytes(answer.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder) & 0xFFFFFFFF


def _failure(about: bytes) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), os.fsdecode(about))
