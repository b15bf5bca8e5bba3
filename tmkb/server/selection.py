"""What a server is loaded from: a request for each view, and the version of each Git source."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tmkb.schema.values import JsonObject
    from tmkb.server.repository import Source, Version

SCHEME = "git+"  # of a source in Git; other names are folders


class Selection:
    """Requests by view, sources and versions by their text. Immutable."""

    def __init__(
        self, requests: Mapping[str, JsonObject], sources: Mapping[str, Source], versions: Mapping[str, Version]
    ) -> None:
        self.requests = requests
        self.sources = sources
        self.versions = versions

    def at(self, version: Version) -> Selection:
        """Return the selection with another version of its source."""
        return Selection(self.requests, self.sources, {**self.versions, version.source.text: version})

    def folders(self, view: str) -> list[str]:
        """Return the pattern folders of a view, with those of versions in place of sources."""
        names: Any = self.requests[view]["patterns"]
        return [self.versions[name].files if name in self.versions else name for name in names]

    def pinned(self) -> dict[str, JsonObject]:
        """Return the requests with folders in place of sources."""
        return {view: {**request, "patterns": [*self.folders(view)]} for view, request in self.requests.items()}


def of(requests: Mapping[str, JsonObject], verified: bool) -> Selection:
    """Return the selection for ``requests``, without versions. Raises SpecError if a source is not valid."""
    named: Any = [name for request in requests.values() for name in request["patterns"]]  # type: ignore[union-attr]
    texts = [name for name in dict.fromkeys(named) if is_source(name)]
    if not texts:
        return Selection(requests, {}, {})
    from tmkb.server import repository

    return Selection(requests, {text: repository.parse(text, verified) for text in texts}, {})


def is_source(name: str) -> bool:
    """Return whether ``name`` is meant as a source in Git, perhaps by mistake without ``git+``, and not as a folder."""
    return name.startswith(SCHEME) or "://" in name
