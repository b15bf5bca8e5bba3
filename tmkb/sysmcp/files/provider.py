"""The provider ``files``: search and inspect files below configured folders, the roots.

A path outside the roots gets the same error whether or not it exists.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import stat
from contextlib import closing, contextmanager

from tmkb.errors import ToolError
from tmkb.providers.operation import Progress
from tmkb.sysmcp import faults, times
from tmkb.sysmcp.audit import AuditedProvider
from tmkb.sysmcp.budget import TimeBudget
from tmkb.sysmcp.files import beneath, content, matching, names
from tmkb.sysmcp.files import search as searching
from tmkb.sysmcp.files.page import Page
from tmkb.sysmcp.files.walk import Skipped, Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from typing import Any, ClassVar

    from tmkb.providers.base import Prepared
    from tmkb.providers.operation import StepGenerator
    from tmkb.schema.values import JsonObject
    from tmkb.sysmcp.files.walk import Entry

_DEPTH = 64  # default of the argument `maxDepth`
_ROOT = "."  # the path of a root itself
_LIMIT = 100  # default of the argument `limit`


class Files(AuditedProvider):
    """Files below the roots. Each call opens its root anew, so it sees file systems that were mounted later."""

    operations: ClassVar = {"search": (), "stat": ()}

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        super().__init__(settings, part)
        self.roots: Mapping[str, str] = settings["roots"]
        self.limits: Mapping[str, Any] = settings["limits"]
        self.follow = settings["symlinks"] == "beneath"

    @classmethod
    def prepare(cls, settings: Mapping[str, Any]) -> Prepared:
        """Return a log line that names the roots."""
        roots = ", ".join(f"{name} ({folder})" for name, folder in settings["roots"].items())
        return {"notes": [["serves_files", {"roots": roots}] if roots else ["serves_no_files", {}]]}

    def search(
        self, limit: float = _LIMIT, offset: float = 0, cursor: str | None = None, **query: Any
    ) -> StepGenerator:
        """Return a page of files that match ``query``, in the order of paths. Raises ToolError."""
        has_place = "root" in query or "path" in query
        roots = [self._root(query.get("root"))] if has_place or not self.roots else [*self.roots]
        criteria = _criteria(query, self.limits)
        page = Page(query, int(limit), int(offset), self.limits["answer_bytes"])
        after = page.resume(cursor, roots) if cursor is not None else []
        skipped = Skipped()
        budget = TimeBudget(self.limits["seconds"])
        prefix = "" if query.get("path", _ROOT) == _ROOT else f"{query['path']}/"
        is_complete = False
        with closing(self._entries(roots[roots.index(page.root or roots[0]) :], query, after, skipped)) as entries:
            for count, (root, entry) in enumerate(entries, 1):
                if entry is not None:
                    hit = criteria.check(entry, skipped)
                    if hit is not None and not page.add({**self._place(root, prefix + entry.path), **hit}):
                        break
                    page.root, page.path = root, entry.path
                if budget.is_step_over():
                    if entry is not None and budget.is_spent():
                        break
                    yield Progress(count)
                    budget.begin_step()
            else:
                is_complete = True
        return {**page.result(is_complete), "skipped": {**skipped.counts}}

    def stat(self, path: str, root: str | None = None, hash: str = "none") -> StepGenerator:
        """Describe a file, a folder or a link itself. Raises ToolError."""
        root = self._root(root)
        parts = _split(path)
        with _tool_errors(path), self._open(root) as folder:
            with beneath.closing_fd(beneath.open_below(folder, parts, beneath.INSPECT, self.follow)) as fd:
                status = os.fstat(fd)
                target = names.display(os.readlink("", dir_fd=fd)) if stat.S_ISLNK(status.st_mode) else None
            result: JsonObject = {
                **self._place(root, path),
                "type": searching.kind(status),
                "size": status.st_size,
                "mode": f"{stat.S_IMODE(status.st_mode):04o}",
                "modified": times.from_timestamp(status.st_mtime),
                "accessed": times.from_timestamp(status.st_atime),
                "created": None,  # not available in Python on Linux
                "hidden": path.rpartition("/")[2].startswith(".") and path != _ROOT,
                "readable": False,
            }
            if target is not None and (self.settings["show_host_path"] or _stays_inside(path, target)):
                result["linkTarget"] = target
            result |= yield from self._read(folder, parts, status, hash == "sha256")
        return result

    def _root(self, root: str | None) -> str:
        """Return the name of the root; None means the only one. Raises ToolError."""
        allowed = ", ".join(self.roots)
        if not self.roots:
            raise ToolError("no_roots")
        if root is not None and root not in self.roots:
            raise ToolError("root_not_permitted", root=root, allowed=allowed)
        if root is None and len(self.roots) > 1:
            raise ToolError("root_needed", allowed=allowed)
        return root or next(iter(self.roots))

    @contextmanager
    def _open(self, root: str) -> Iterator[int]:
        if not beneath.IS_SUPPORTED:
            raise ToolError("system_not_served")
        try:
            fd = beneath.open_root(self.roots[root])
        except OSError:
            raise ToolError("root_unavailable", root=root) from None
        with beneath.closing_fd(fd):
            yield fd

    def _entries(
        self, roots: Sequence[str], query: Mapping[str, Any], after: Sequence[str], skipped: Skipped
    ) -> Generator[tuple[str, Entry | None], None, None]:
        """Walk the folder of the query in each of ``roots``; in the first one, start after the path ``after``."""
        path = query.get("path", _ROOT)
        parts = _split(path)
        depth = int(query.get("maxDepth", _DEPTH))
        for root in roots:
            with _tool_errors(path), self._open(root) as folder:
                fd = beneath.open_below(folder, parts, beneath.FOLDER, self.follow)
            with beneath.closing_fd(fd):
                walk = Walk(fd, depth, query.get("includeHidden", False), self.settings["one_file_system"], skipped)
                for entry in walk.entries(after):
                    yield root, entry
            after = ()

    def _place(self, root: str, path: str) -> JsonObject:
        place: JsonObject = {"root": root, "path": path}
        if self.settings["show_host_path"]:
            place["hostPath"] = os.path.abspath(os.path.join(self.roots[root], path))
        return place

    def _read(
        self, folder: int, parts: Sequence[str], status: os.stat_result, hashed: bool
    ) -> Generator[Progress, None, JsonObject]:
        """Return whether the file or folder with ``status`` is readable, and the hash of a file if ``hashed``."""
        is_file = stat.S_ISREG(status.st_mode)
        if not is_file and not stat.S_ISDIR(status.st_mode):
            return {}  # opening a device or pipe can have side effects
        try:
            with beneath.closing_fd(beneath.open_below(folder, parts, beneath.READ, self.follow)) as fd:
                if not os.path.samestat(os.fstat(fd), status):  # another file has this name now
                    return {}
                return {"readable": True, **({"sha256": (yield from self._digest(fd))} if hashed and is_file else {})}
        except OSError:
            return {}

    def _digest(self, fd: int) -> Generator[Progress, None, str]:
        budget = TimeBudget(self.limits["seconds"])
        sha256, size, done = hashlib.sha256(), os.fstat(fd).st_size, 0
        try:
            for block in content.stable_blocks(fd, self.limits["hash_bytes"]):
                sha256.update(block)
                done += len(block)
                if budget.is_step_over():
                    yield Progress(done, size)
                    budget.begin_step()
                if budget.is_spent():
                    raise ToolError("hash_timed_out", seconds=self.limits["seconds"])
        except faults.TooLarge:
            raise ToolError("too_large_to_hash", limit=self.limits["hash_bytes"]) from None
        except faults.Changed:
            raise ToolError("changed_meanwhile") from None
        return sha256.hexdigest()


def _criteria(query: Mapping[str, Any], limits: Mapping[str, Any]) -> searching.Criteria:
    """Build the criteria of a query. Raises ToolError."""
    sizes = query.get("minSize", 0), query.get("maxSize", math.inf)
    if sizes[0] > sizes[1]:
        raise ToolError("empty_range", path="arguments.maxSize", other="arguments.minSize")
    modified = _timestamp(query, "modifiedAfter", -math.inf), _timestamp(query, "modifiedBefore", math.inf)
    if modified[0] >= modified[1]:
        raise ToolError("empty_range", path="arguments.modifiedBefore", other="arguments.modifiedAfter")
    pattern, mode = query["pattern"], query.get("mode", "glob")
    try:
        match = matching.MODES[mode](pattern, query.get("caseSensitive", mode != "substring"))
    except ModuleNotFoundError:
        raise ToolError("mode_unavailable", mode=mode) from None
    except ValueError:
        raise ToolError("bad_pattern", mode=mode, received=pattern) from None
    words = None
    if "content" in query:
        exact = query.get("caseSensitive", True)
        words = searching.Words(
            query["content"], exact, limits["file_bytes"], limits["lines"], limits["line_characters"]
        )
    return searching.Criteria(match, "/" in pattern, query.get("type", "file"), sizes, modified, words)


def _timestamp(query: Mapping[str, Any], name: str, default: float) -> float:
    try:
        return times.parse(query[name]).timestamp() if name in query else default
    except (ValueError, OverflowError):
        raise ToolError("bad_time", path=f"arguments.{name}", received=query[name]) from None


def _split(path: str) -> list[str]:
    try:
        return names.split(path)
    except names.OutsideRoot:
        raise ToolError("outside") from None
    except ValueError:
        raise ToolError("bad_path", received=path) from None


def _stays_inside(path: str, target: str) -> bool:
    """Return whether the link ``path`` has a relative target inside its root. Compares the texts only."""
    within = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return not os.path.isabs(target) and within.split("/")[0] != ".."


@contextmanager
def _tool_errors(path: str) -> Iterator[None]:
    """Turn an OSError into a ToolError. All links get one error, which hides whether their target exists."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EXDEV):
            raise ToolError("outside") from None
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise ToolError("path_not_found", path=path) from None
        if error.errno == errno.ENAMETOOLONG:
            raise ToolError("bad_path", received=path) from None
        if isinstance(error, PermissionError):
            raise ToolError("path_not_readable", path=path) from None
        raise ToolError("path_failed", path=path) from None
