"""Open what is below a folder, and nothing else, while somebody swaps folders for links under our hands.

The kernel keeps us in: openat2 refuses a link anywhere on the way. Where it is missing or forbidden (old container
profiles answer EPERM), a walk opens every level by the descriptor of the one before, with O_NOFOLLOW; slower, as safe.
Checking a path first and opening it afterwards is neither (spec section 3).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from sidecar.core.errors import NotFound, UnsafePath
from sidecar.core.inventory import StatKey
from sidecar.core.paths import parse_physical
from sidecar.stores import kernel

Opener = Callable[[int, bytes, int], int]
"""Opens a relative path beneath a folder's descriptor, with flags; raises OSError, ELOOP for a link on the way."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_LOCATE = os.O_PATH | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_FOLDERS_HELD = 128


def by_kernel(folder: int, below: bytes, flags: int) -> int:
    """The opener that asks the kernel once."""
    if flags & os.O_DIRECTORY:
        # With O_NOFOLLOW a link at the end would be "no folder"; without, it is what it is: a link that was refused.
        flags &= ~os.O_NOFOLLOW
    return kernel.openat2(folder, below, flags)


def by_walking(folder: int, below: bytes, flags: int) -> int:
    """The opener for kernels without openat2: level by level, and no level may be a link."""
    *parents, leaf = below.split(b"/")
    at = os.dup(folder)
    try:
        for part in parents:
            above, at = at, _step(at, part)
            os.close(above)
        return _leaf(at, leaf, flags)
    finally:
        os.close(at)


def best_opener(root: str) -> Opener:
    """Try openat2 once; whatever refuses it here (a kernel, a container's profile) will refuse it always."""
    with held(os.open(root, os.O_PATH | os.O_DIRECTORY)) as folder:
        try:
            os.close(kernel.openat2(folder, b".", os.O_PATH))
        except OSError:
            return by_walking
    return by_kernel


class Beneath:
    """The folder at `root` and what is below it.

    Paths are OUT_DIR-relative texts; one that the grammar of physical paths refuses is UnsafePath. The root is opened
    by name each time: when another folder takes its place, that one is meant from then on.
    """

    def __init__(self, root: str, opener: Opener | None = None) -> None:
        self.root = root
        self._open = opener or best_opener(root)

    def folder(self, text: str) -> int:
        """The descriptor of a folder, `""` being the root. Raises NotFound, or UnsafePath for anything else."""
        if not text:
            return self._root()
        with held(self._root()) as root, _refusals(text):
            return self._open(root, _raw(text), FOLDER)

    def file(self, text: str) -> int:
        """A descriptor to read a regular file. Raises NotFound, or UnsafePath for anything else.

        What is there is located first and opened only when it is a regular file: opening a FIFO or a device for a look
        would already do something to it. BlockingIOError says that somebody holds a lease to write.
        """
        return _open_located(self._locate(text), text)

    def file_at_once(self, text: str) -> int:
        """The same where no name below the root has to come from a disk. Raises OSError where one does, or may.

        Reading from it marks no access, which would be a change of the disk; so it is for files of our own uid.
        """
        if self._open is not by_kernel:
            raise BlockingIOError(errno.EAGAIN, "this opener may have to wait", text)
        with held(self._root()) as root:
            located = kernel.openat2(root, _raw(text), _LOCATE, at_once=True)
        return _open_located(located, text, _READ | os.O_NOATIME)

    @contextmanager
    def by_folder(self) -> Generator[Callable[[str], int], None, None]:
        """`file` for many paths in a row. A folder is opened once and held; the files in it are found from there.

        That it stood at its path was true when the first of them was asked for, so hold it for no longer than that may
        be old. The same goes for the root, which is one of them.
        """
        folders: dict[str, int] = {}

        def let_go() -> None:
            while folders:
                os.close(folders.popitem()[1])

        def held_open(folder: str) -> int:
            if folder not in folders:
                if len(folders) + 2 > _FOLDERS_HELD:
                    let_go()
                if "" not in folders:
                    folders[""] = self._root()
                if folder:
                    with _refusals(folder):
                        folders[folder] = self._open(folders[""], _raw(folder), FOLDER)
            return folders[folder]

        def file(text: str) -> int:
            folder, name = text.rpartition("/")[0], _raw(text).rpartition(b"/")[2]
            at = held_open(folder)
            try:
                located = os.open(name, _LOCATE, dir_fd=at)
            except OSError:
                with _refusals(text):
                    raise
            return _open_located(located, text)

        try:
            yield file
        finally:
            let_go()

    def status(self, text: str) -> os.stat_result:
        """The stat of a regular file, without opening it. Raises NotFound, or UnsafePath for anything else."""
        with held(self._locate(text)) as located:
            status = os.fstat(located)
        _require_regular(status, text)
        return status

    def nearest(self, text: str) -> tuple[int, tuple[bytes, ...], bytes]:
        """Where a file could be made: the deepest folder that exists, the folders missing below it, the name.

        Raises UnsafePath when a link or a file stands where a folder is needed, NotFound when the root is gone.
        """
        *parents, name = _raw(text).split(b"/")
        at = self._root()
        for depth, part in enumerate(parents):
            try:
                with _refusals(text):
                    below = _step(at, part)
            except NotFound as failure:
                if isinstance(failure.__cause__, NotADirectoryError):
                    os.close(at)
                    raise UnsafePath(text, "a file stands where a folder is needed") from None
                return at, tuple(parents[depth:]), name
            except BaseException:
                os.close(at)
                raise
            os.close(at)
            at = below
        return at, (), name

    def _locate(self, text: str) -> int:
        raw = _raw(text)
        with held(self._root()) as root, _refusals(text):
            return self._open(root, raw, _LOCATE)

    def _root(self) -> int:
        try:
            return os.open(self.root, FOLDER)
        except (FileNotFoundError, NotADirectoryError) as failure:
            raise NotFound(self.root, "OUT_DIR is not where it was") from failure
        except OSError as failure:
            if failure.errno == errno.ELOOP:
                raise NotFound(self.root, "a link stands where OUT_DIR was") from failure
            raise


def _open_located(located: int, text: str, flags: int = _READ) -> int:
    """Open for reading what an O_PATH descriptor, which is taken over, stands for. Raises UnsafePath for no file."""
    try:
        _require_regular(os.fstat(located), text)
        return os.open(f"/proc/self/fd/{located}", flags)
    except OSError:
        with _refusals(text):
            raise
    finally:
        os.close(located)


def make_folders(at: int, parts: Sequence[bytes], text: str) -> int:
    """Make and enter the folders `parts` below the descriptor `at`, which is taken over. Answers the last one's.

    Each is synced into the one above. A folder that somebody else made meanwhile is as good as ours. Raises UnsafePath
    when something else stands there, and FileNotFoundError when somebody removes what is made.
    """
    try:
        for part in parts:
            ours = _make(at, part)
            with _refusals(text):
                above, at = at, _step(at, part)
            try:
                if ours:
                    os.fchmod(at, 0o755)  # the daemon's umask is tight, the programs that write here are others
                    os.fsync(above)
            finally:
                os.close(above)
    except NotFound as failure:
        os.close(at)
        if isinstance(failure.__cause__, NotADirectoryError):
            raise UnsafePath(text, "a file stands where a folder is needed") from failure
        raise FileNotFoundError(errno.ENOENT, "somebody removes this folder", text) from failure
    except BaseException:
        os.close(at)
        raise
    return at


@contextmanager
def held(fd: int) -> Generator[int, None, None]:
    """Close `fd` at the end of the block."""
    try:
        yield fd
    finally:
        os.close(fd)


def key_of(status: os.stat_result) -> StatKey:
    """What identifies this state of a file (spec section 5)."""
    return StatKey(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@contextmanager
def _refusals(text: str) -> Generator[None, None, None]:
    """Turn what the kernel says about a path into our own words."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as failure:
        raise NotFound(text) from failure
    except PermissionError as failure:
        raise UnsafePath(text, "the daemon may not read it") from failure
    except OSError as failure:
        refusal = _UNSAFE.get(failure.errno or 0)
        if refusal is None:
            raise
        raise UnsafePath(text, refusal) from failure


_UNSAFE = {
    errno.ELOOP: "links are not followed",
    errno.EXDEV: "a path stays below OUT_DIR",
    errno.ENAMETOOLONG: "the file system takes no name of this length",
    errno.EINVAL: "the file system takes no such name",
    errno.ENXIO: "only regular files are opened",
}


def _raw(text: str) -> bytes:
    return parse_physical(text).physical.encode()


def _require_regular(status: os.stat_result, text: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise UnsafePath(text, f"only regular files are opened, and this is {kind}")


_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _make(at: int, part: bytes) -> bool:
    try:
        os.mkdir(part, 0o755, dir_fd=at)
    except FileExistsError:
        return False
    return True


def _step(at: int, part: bytes) -> int:
    """Enter one folder. The kernel says ENOTDIR for a link and for a file alike; callers must know which.

    What was no folder and is one now was changed under our hands, and counts as the link it may have been.
    """
    try:
        return os.open(part, FOLDER, dir_fd=at)
    except NotADirectoryError:
        standing = os.stat(part, dir_fd=at, follow_symlinks=False).st_mode
        if stat.S_ISLNK(standing) or stat.S_ISDIR(standing):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part) from None
        raise


def _leaf(at: int, leaf: bytes, flags: int) -> int:
    if flags & os.O_DIRECTORY:
        return _step(at, leaf)
    return os.open(leaf, flags | os.O_NOFOLLOW, dir_fd=at)
