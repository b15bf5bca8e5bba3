"""Write exported files into a folder that a later export can replace."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from tmkb.errors import DocumentError, Problem, SpecError
from tmkb.schema import paths, textfile

RECORD = ".tmkb-export"  # the target and the files of the last export, as JSON


def write(folder: str, target: str, files: Mapping[str, str], force: bool = False) -> list[str]:
    """Write ``files`` below ``folder``, and remove the other files of an earlier export.

    Args:
        folder: the folder; it is created if it does not exist.
        target: the format, which the folder remembers: an export never replaces one of another format.
        files: path below ``folder`` with ``/`` → content.
        force: also write into a folder with other files. They stay, unless they have the path of an exported file.

    Returns:
        The paths of removed files.

    Raises:
        SpecError: ``folder`` is not a folder, has files that no export of this format wrote, or cannot be written.
    """
    shown = paths.shown(folder)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise SpecError([Problem.of_argument("not_a_place", "--output", folder=shown)])
    before = _recorded(folder, target)
    try:
        if before is None and not force and os.path.isdir(folder) and os.listdir(folder):
            raise SpecError([Problem.of_argument("not_exported", "--output", folder=shown, target=target)])
        stale = sorted(name for name in set(before or ()) - set(files) if os.path.isfile(_path(folder, name)))
        for name, text in files.items():
            textfile.save(_path(folder, name), text)
        for name in stale:
            os.unlink(_path(folder, name))
        record = json.dumps({"target": target, "files": sorted(files)}, indent=0)
        textfile.save(os.path.join(folder, RECORD), record + "\n")
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecError([Problem.of_argument("not_written", "--output", folder=shown, reason=reason)]) from error
    return stale


def _path(folder: str, name: str) -> str:
    return os.path.join(folder, *name.split("/"))


def _recorded(folder: str, target: str) -> list[str] | None:
    """Return the files that an export of ``target`` wrote into ``folder``; None if there is no such record.

    A record that names a file outside of ``folder`` does not count.
    """
    try:
        record = json.loads(textfile.read(os.path.join(folder, RECORD), RECORD))
        files = record["files"] if record["target"] == target else None
    except (DocumentError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(files, list) or not all(isinstance(name, str) and _is_inside(name) for name in files):
        return None
    return files


def _is_inside(name: str) -> bool:
    steps = name.split("/")
    return not os.path.isabs(name) and "\\" not in name and not {"", ".", ".."} & set(steps)
