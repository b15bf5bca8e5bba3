"""Files below folders that the settings name: searched page by page, and one by one.

Nothing else can be reached, and what lies elsewhere is refused in the same words whether it is there or not.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import stat
import time
from contextlib import closing, contextmanager

from tmkb.errors import ToolError
from tmkb.providers.base import Provider
from tmkb.providers.operation import Progress
from tmkb.sysmcp import faults, times
from tmkb.sysmcp.audit import Audit
from tmkb.sysmcp.files import beneath, content, kinds, matching, names
from tmkb.sysmcp.files.page import Page
from tmkb.sysmcp.files.search import Criteria, Words
from tmkb.sysmcp.files.walk import Skipped, Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from typing import Any, ClassVar

    from tmkb.providers.base import Prepared
    from tmkb.providers.operation import Operation, StepGenerator
    from tmkb.schema.values import JsonObject
    from tmkb.sysmcp.files.walk import Entry

_STEP = 0.01  # seconds after which others get their turn
_DEPTH = 64  # folders that a search enters below each other
_HERE = "."  # the path of a root itself
_LIMIT = 100  # files of a page, if the client names no number


class Files(Provider):
    """The roots of the settings. Each call opens them anew, so what is mounted meanwhile is seen."""

    operations: ClassVar = {"search": (), "stat": ()}

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        super().__init__(settings, part)
        self.audit = Audit(settings.get("audit"))
        self.roots: Mapping[str, str] = settings["roots"]
        self.limits: Mapping[str, Any] = settings["limits"]
        self.follow = settings["symlinks"] == "beneath"

    @classmethod
    def prepare(cls, settings: Mapping[str, Any]) -> Prepared:
        """Return a note with what is served, for the log."""
        roots = ", ".join(f"{name} ({folder})" for name, folder in settings["roots"].items())
        note = ["serves_files", {"roots": roots}] if roots else ["serves_no_files", {}]
        return {"notes": [note]}

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """The operation called ``name``, recorded as the tool that ``definition`` names."""
        found: dict[str, Callable[..., StepGenerator]] = {"search": self.search, "stat": self.stat}
        return self.audit.recorded(definition["name"], found[name])

    def search(
        self, limit: float = _LIMIT, offset: float = 0, cursor: str | None = None, **query: Any
    ) -> StepGenerator:
        """What fits all of ``query``, in the order of paths, until a page is full or time is over."""
        roots = self._searched(query)
        criteria = _criteria(query, self.limits)
        page = Page(query, int(limit), int(offset), self.limits["answer_bytes"])
        after = page.resume(cursor, roots) if cursor is not None else []
        skipped = Skipped()
        pace = _Pace(self.limits["seconds"])
        is_complete = False
        with closing(self._entries(roots[roots.index(page.root or roots[0]) :], query, after, skipped)) as entries:
            for looked_at, (root, entry) in enumerate(entries, 1):
                if entry is not None:
                    hit = criteria.hit(entry, skipped)
                    if hit is not None and not page.take({**self._place(root, _joined(query, entry)), **hit}):
                        break
                    page.root, page.path = root, entry.path
                if pace.is_due():
                    if entry is not None and pace.is_over():
                        break
                    yield Progress(looked_at)
                    pace.go_on()
            else:
                is_complete = True
        return {**page.answer(is_complete), "skipped": {**skipped.counts}}

    def stat(self, path: str, root: str | None = None, hash: str = "none") -> StepGenerator:
        """What is known of one file, folder or link, which is not followed."""
        root = self._one(root)
        parts = _parts(path)
        with _refusing(path), self._opened(root) as folder:
            with beneath.opened(beneath.below(folder, parts, beneath.ITSELF, self.follow)) as fd:
                status = os.fstat(fd)
                link = names.shown(os.readlink("", dir_fd=fd)) if stat.S_ISLNK(status.st_mode) else None
            answer: JsonObject = {
                **self._place(root, path),
                "type": kinds.kind(status),
                "size": status.st_size,
                "mode": f"{stat.S_IMODE(status.st_mode):04o}",
                "modified": times.iso(status.st_mtime),
                "accessed": times.iso(status.st_atime),
                "created": None,  # Python does not ask Linux for it
                "hidden": path.rpartition("/")[2].startswith(".") and path != _HERE,
                "readable": False,
            }
            if link is not None and (self.settings["show_host_path"] or _stays(path, link)):
                answer["linkTarget"] = link
            answer |= yield from self._read(folder, parts, status, hash == "sha256")
        return answer

    def _searched(self, query: Mapping[str, Any]) -> list[str]:
        """The roots to search: all, where neither a root nor a folder in one is named. Raises ToolError."""
        if "root" in query or "path" in query or not self.roots:
            return [self._one(query.get("root"))]
        return [*self.roots]

    def _one(self, root: str | None) -> str:
        """The root that is meant; the only one, if none is named. Raises ToolError."""
        allowed = ", ".join(self.roots)
        if not self.roots:
            raise ToolError("no_roots")
        if root is not None and root not in self.roots:
            raise ToolError("root_not_permitted", root=root, allowed=allowed)
        if root is None and len(self.roots) > 1:
            raise ToolError("root_needed", allowed=allowed)
        return root or next(iter(self.roots))

    @contextmanager
    def _opened(self, root: str) -> Iterator[int]:
        if not beneath.IS_POSSIBLE:
            raise ToolError("system_not_served")
        try:
            fd = beneath.root(self.roots[root])
        except OSError:
            raise ToolError("root_unavailable", root=root) from None
        with beneath.opened(fd):
            yield fd

    def _entries(
        self, roots: Sequence[str], query: Mapping[str, Any], after: Sequence[str], skipped: Skipped
    ) -> Generator[tuple[str, Entry | None], None, None]:
        """What lies below the searched folder of each of ``roots``; in the first of them, after the path ``after``."""
        path = query.get("path", _HERE)
        parts = _parts(path)
        depth = int(query.get("maxDepth", _DEPTH))
        for root in roots:
            with _refusing(path), self._opened(root) as folder:
                fd = beneath.below(folder, parts, beneath.FOLDER, self.follow)
            with beneath.opened(fd):
                walk = Walk(fd, depth, query.get("includeHidden", False), self.settings["one_file_system"], skipped)
                for entry in walk.entries(after):
                    yield root, entry
            after = ()

    def _place(self, root: str, path: str) -> JsonObject:
        """Where something is, as it is told."""
        place: JsonObject = {"root": root, "path": path}
        if self.settings["show_host_path"]:
            place["hostPath"] = os.path.abspath(os.path.join(self.roots[root], path))
        return place

    def _read(
        self, folder: int, parts: Sequence[str], status: os.stat_result, hashed: bool
    ) -> Generator[Progress, None, JsonObject]:
        """Whether the file or folder of that status can be read, and the digest of a file if it is wanted."""
        is_file = stat.S_ISREG(status.st_mode)
        if not is_file and not stat.S_ISDIR(status.st_mode):
            return {}  # opening it may do things
        try:
            with beneath.opened(beneath.below(folder, parts, beneath.READING, self.follow)) as fd:
                if not os.path.samestat(os.fstat(fd), status):  # another one has its name by now
                    return {}
                return {"readable": True, **({"sha256": (yield from self._digest(fd))} if hashed and is_file else {})}
        except OSError:
            return {}

    def _digest(self, fd: int) -> Generator[Progress, None, str]:
        pace = _Pace(self.limits["seconds"])
        sha256, size, done = hashlib.sha256(), os.fstat(fd).st_size, 0
        try:
            for block in content.unchanged(fd, self.limits["hash_bytes"]):
                sha256.update(block)
                done += len(block)
                if pace.is_due():
                    yield Progress(done, size)
                    pace.go_on()
                if pace.is_over():
                    raise ToolError("hash_timed_out", seconds=self.limits["seconds"])
        except faults.TooLarge:
            raise ToolError("too_large_to_hash", limit=self.limits["hash_bytes"]) from None
        except faults.Changed:
            raise ToolError("changed_meanwhile") from None
        return sha256.hexdigest()


class _Pace:
    """When others get their turn, and when there is no time left."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.go_on()

    def go_on(self) -> None:
        """Others have had their turn."""
        self.turn = time.monotonic() + _STEP

    def is_due(self) -> bool:
        """Whether others have waited long enough."""
        return time.monotonic() >= self.turn

    def is_over(self) -> bool:
        """Whether the call has taken as long as it may."""
        return time.monotonic() >= self.end


def _criteria(query: Mapping[str, Any], limits: Mapping[str, Any]) -> Criteria:
    """What a search looks for. Raises ToolError for what cannot be looked for."""
    sizes = query.get("minSize", 0), query.get("maxSize", math.inf)
    if sizes[0] > sizes[1]:
        raise ToolError("empty_range", path="arguments.maxSize", other="arguments.minSize")
    moments = _moment(query, "modifiedAfter", -math.inf), _moment(query, "modifiedBefore", math.inf)
    if moments[0] >= moments[1]:
        raise ToolError("empty_range", path="arguments.modifiedBefore", other="arguments.modifiedAfter")
    mode = query.get("mode", "glob")
    match = _match(query["pattern"], mode, query.get("caseSensitive", mode != "substring"))
    words = None
    if "content" in query:
        exact = query.get("caseSensitive", True)
        words = Words(query["content"], exact, limits["file_bytes"], limits["lines"], limits["line_characters"])
    return Criteria(match, "/" in query["pattern"], query.get("type", "file"), sizes, moments, words)


def _match(pattern: str, mode: str, exact: bool) -> matching.Match:
    try:
        return matching.MODES[mode](pattern, exact)
    except ModuleNotFoundError:
        raise ToolError("mode_unavailable", mode=mode) from None
    except ValueError:
        raise ToolError("bad_pattern", mode=mode, received=pattern) from None


def _moment(query: Mapping[str, Any], name: str, otherwise: float) -> float:
    try:
        return times.seconds(query[name]) if name in query else otherwise
    except (ValueError, OverflowError):
        raise ToolError("bad_time", path=f"arguments.{name}", received=query[name]) from None


def _parts(path: str) -> list[str]:
    try:
        return names.components(path)
    except names.Outside:
        raise ToolError("outside") from None
    except ValueError:
        raise ToolError("bad_path", received=path) from None


def _stays(path: str, target: str) -> bool:
    """Return whether the target of the link at ``path`` is a path within its root, as far as the texts tell."""
    within = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return not os.path.isabs(target) and within.split("/")[0] != ".."


def _joined(query: Mapping[str, Any], entry: Entry) -> str:
    """The path of ``entry`` from its root on."""
    return entry.path if query.get("path", _HERE) == _HERE else f"{query['path']}/{entry.path}"


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """What the system says of a path, as a ToolError; not why no link is followed, which would tell of its end."""
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
