"""Where folders are on a machine, as a value: tests play macOS and Windows on Linux."""

from __future__ import annotations

import fnmatch
import functools
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from tmkb.schema import paths, template

Folders = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Machine:
    """A machine and its user.

    Args:
        platform: as `sys.platform`: `linux`, `darwin` or `win32`.
        home: the home folder.
        environment: the environment variables.
        folder: the current folder, which is the project.
    """

    platform: str
    home: str
    environment: Mapping[str, str]
    folder: str

    @classmethod
    def here(cls) -> Machine:
        """Return this machine. Raises OSError if the current folder was deleted."""
        platform = sys.platform if sys.platform in ("darwin", "win32") else "linux"
        return cls(platform, os.path.expanduser("~"), os.environ, os.getcwd())

    def paths(self, form: str, folders: Folders | None = None, **fields: str) -> list[str]:
        """Return the paths that ``form`` stands for, sorted: one, unless it has wildcards.

        A part with a wildcard stands for the existing names that match. Other parts need not exist.

        Args:
            form: as `clients/*.yaml` has it, for example `{home}/.cursor/mcp.json`.
            folders: the `folders` of the client.
            fields: further placeholders.
        """
        known = self._known(folders or {}, fields)
        first, *rest = form.split("/")
        found = [template.fill(first, known)]
        for part in rest:
            if "*" in part:
                found = [os.path.join(path, name) for path in found for name in fnmatch.filter(_names(path), part)]
            else:
                found = [os.path.join(path, template.fill(part, known)) for path in found]
        return sorted(os.path.normpath(path) for path in found)

    def shown(self, path: str) -> str:
        """Return ``path`` for messages: relative to the current folder, else with `~` for the home folder."""
        home = self.home.rstrip(os.sep)
        relative = paths.shown(path)
        return f"~{path[len(home) :]}" if relative == path and path.startswith(home + os.sep) else relative

    @functools.cached_property
    def repository(self) -> str:
        """The main work tree of the git repository that has the current folder, else that folder; with `/`."""
        folder = above = self.folder
        while not os.path.exists(os.path.join(above, ".git")):
            above, below = os.path.dirname(above), above
            if above == below:
                break
        else:
            folder = _main_work_tree(above)
        return folder.replace("\\", "/") if self.platform == "win32" else folder

    def _known(self, folders: Folders, fields: Mapping[str, str]) -> dict[str, str]:
        """Return the value of each placeholder."""
        known = {
            "home": self.home,
            "project": self.folder,
            "config": self._folder("XDG_CONFIG_HOME", os.path.join(self.home, ".config")),
            "appdata": self._folder("APPDATA", os.path.join(self.home, "AppData", "Roaming")),
            "localappdata": self._folder("LOCALAPPDATA", os.path.join(self.home, "AppData", "Local")),
            **fields,
        }
        for name, folder in folders.items():
            named = self.environment.get(folder["variable"], "")
            known[name] = os.path.join(self.folder, named) if named else template.fill(folder["default"], known)
        return known

    def _folder(self, variable: str, default: str) -> str:
        """Return the folder that a variable names; a relative one is invalid."""
        named = self.environment.get(variable, "")
        return named if os.path.isabs(named) else default


def _main_work_tree(folder: str) -> str:
    """Return the work tree beside the data of a repository; ``folder`` if it is that, or not a further work tree."""
    try:
        with open(os.path.join(folder, ".git"), encoding="utf-8") as file:
            data = os.path.join(folder, file.read().removeprefix("gitdir:").strip())
        with open(os.path.join(data, "commondir"), encoding="utf-8") as file:
            common = os.path.realpath(os.path.join(data, file.read().strip()))
    except (OSError, ValueError):  # ``.git`` is a folder, or that of a submodule
        return folder
    return os.path.dirname(common) if os.path.basename(common) == ".git" else common


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
