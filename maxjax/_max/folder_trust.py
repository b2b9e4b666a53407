"""Whose a cache folder and its files are, and who could put others in their place."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

# As many links as a path may lead through on Linux.
_MOST_LINKS = 40


def is_ours(status: os.stat_result) -> bool:
    """Whether this user owns the file and nobody else may write to it."""
    if os.name == "nt":
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _is_trusted(status: os.stat_result) -> bool:
    """Whether nobody but root and this user may write to the file."""
    if os.name == "nt":
        return True
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022


def may_be_read(path: Path, status: os.stat_result) -> bool:
    """Whether a file is this user's own, or of a prepared folder and can be trusted."""
    return is_ours(status) or _is_trusted(status) and not os.access(path.parent, os.W_OK)


def _on_the_way(directory: Path) -> Iterator[str]:
    """The folders and the symbolic links that a path leads through, each by a path without links.

    Raises:
      OSError: one of them is not there, or they lead in a circle.
    """
    folder, links = directory.anchor, 0
    left = list(directory.parts[:0:-1])
    while left:
        yield folder
        name = left.pop()
        if name == "..":
            folder = os.path.dirname(folder)
            continue
        found = os.path.join(folder, name)
        if not stat.S_ISLNK(os.lstat(found).st_mode):
            folder = found
            continue
        yield found
        links += 1
        if links > _MOST_LINKS:
            raise OSError(f"{directory} leads through too many symbolic links")
        target = Path(os.readlink(found))
        folder = target.anchor or folder
        left += [part for part in target.parts[::-1] if part != target.anchor]


def why_exchangeable(directory: Path) -> str | None:
    """Why others could put another folder in the place of this one, or None.

    Raises:
      OSError: there is no such folder.
    """
    if os.name == "nt":
        return None
    # Trusted are the user, root, and the owner of the root folder, who in a container need not be
    # root.
    trusted = {os.geteuid(), 0, os.stat(directory.anchor).st_uid}
    for parent in _on_the_way(directory):
        status = os.lstat(parent)
        mode = status.st_mode
        # A group of the user alone, as many systems make one for each user, is no stranger.
        shared = mode & 0o002 or mode & 0o020 and status.st_gid not in (0, os.getegid())
        if shared and not mode & stat.S_ISVTX and not stat.S_ISLNK(mode):
            return (f"{parent}, in which {directory} is, is writable by other users "
                    f"(mode {stat.S_IMODE(mode):04o})")
        if status.st_uid not in trusted:
            return (f"{parent}, in which {directory} is, belongs to another user "
                    f"(uid {status.st_uid})")
    return None


def is_prepared(directory: Path) -> bool:
    """Whether a folder that this user may not write to holds a cache that can be trusted: of root's
    or the user's own, as an administrator leaves one."""
    try:
        status = os.lstat(directory)
        return stat.S_ISDIR(status.st_mode) and _is_trusted(status) \
            and not os.access(directory, os.W_OK) and why_exchangeable(directory) is None
    except (OSError, ValueError):
        return False
