"""What lies in a folder, by kind: a file is a regular one, and a link is a symlink wherever it leads."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Test = Callable[[os.DirEntry[str]], bool]  # may raise OSError

_FORMATS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "dir",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
ANY = "any"

# Without asking for the status, where the folder tells the kind.
TESTS: dict[str, Test] = {
    "file": lambda item: item.is_file(follow_symlinks=False),
    "dir": lambda item: item.is_dir(follow_symlinks=False),
    "symlink": lambda item: item.is_symlink(),
    ANY: lambda item: True,
}


def kind(status: os.stat_result) -> str:
    """The kind of what has this status."""
    return _FORMATS[stat.S_IFMT(status.st_mode)]
