"""Is OUT_DIR still the folder it was? Compared by what the path names now, with the one before held open.

Holding it keeps its inode number from being given to another folder, which would then look like the same one.
"""

from __future__ import annotations

import errno
import os

from sidecar.stores import kernel


class Standing:
    """The folder that stands at a path, as last seen. `deaf` names its kind of disk where events may be missing."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._fd = -1
        self.deaf = ""
        self.has_changed()

    @property
    def is_lost(self) -> bool:
        return self._fd < 0

    def has_changed(self) -> bool:
        """Look again; whether another folder stands there than before, or one less or more. Blocks."""
        try:
            fd = os.open(self._root, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as failure:
            if failure.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return False  # we are out of descriptors, or the like: nothing is known about OUT_DIR
            fd = -1
        if fd >= 0 and self._fd >= 0 and os.path.sameopenfile(fd, self._fd):
            os.close(fd)
            return False
        was_lost = self.is_lost
        self.close()
        self._fd = fd
        self.deaf = _SHARED_DISKS.get(kernel.file_system_type(fd), "") if fd >= 0 else ""
        return not (was_lost and self.is_lost)

    def close(self) -> None:
        """Let go of the folder."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


# Disks that other machines or programs write to past this kernel, by the numbers of statfs(2).
_SHARED_DISKS = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFE534D42: "SMB",
    0xFF534D42: "CIFS",
    0x01021997: "9p",
    0x65735546: "FUSE",
    0x00C36400: "Ceph",
    0x5346414F: "AFS",
    0x0BD00BD0: "Lustre",
    0x7461636F: "OCFS2",
    0x01161970: "GFS2",
    0x786F4256: "a shared folder of VirtualBox",
}
