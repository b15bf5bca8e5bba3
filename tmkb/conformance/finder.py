"""Find what was recorded for a message of a client, by its meaning.

Ids, the order of members, the identity of the client and metadata that changes from call to call do not count.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from tmkb.conformance import eras, match, matchers
from tmkb.conformance.scripts import Recording, Script, is_retry
from tmkb.protocol.messages import Notification, Request
from tmkb.schema import answers
from tmkb.schema.model import Revision, Spec
from tmkb.schema.values import JsonObject, JsonValue

LONGEST = 100  # characters of an unknown name that are compared with the known ones


class Finder:
    """Compares messages of clients with those of a recording. ``spec``: the rules of all revisions."""

    def __init__(self, recording: Recording, spec: Spec) -> None:
        self.recording = recording
        self.spec = spec
        self.client_metadata = eras.client_metadata(spec)

    def like(self, revision: Revision, request: Request) -> list[Script]:
        """Return the scripts of requests with the same meaning: of the client's era, else of the other."""
        for scripts in self._pools(revision, request.method):
            for whole in (True, False):
                if like := [each for each in scripts if not self.differences(each, request, whole)]:
                    return like
        return []

    def nearest(self, revision: Revision, request: Request) -> Script | None:
        """Return the script whose request differs least; None if no request has the method."""
        scripts = [each for pool in self._pools(revision, request.method) for each in pool]
        named = self.named_by(request.method)

        def distance(script: Script) -> tuple[float, int]:
            wanted, name = (str(each.params.get(named or ""))[:LONGEST] for each in (script, request))
            unlike = 1 - difflib.SequenceMatcher(None, wanted, name).ratio()
            return unlike, len(self.differences(script, request, False))

        return min(scripts, key=distance, default=None)

    def siblings(self, script: Script, revision: Revision) -> Iterator[Script]:
        """Yield the scripts whose request has the same meaning."""
        request = Request(0, script.method, script.params)
        for pool in self._pools(revision, script.method):
            yield from (each for each in pool if not self.differences(each, request, False))

    def differences(self, script: Script, message: Request | Notification, whole: bool = True) -> list[str]:
        """Return how a client's message differs from the recorded one, without what does not count.

        ``whole``: whether metadata of unknown meaning counts.
        """
        if script.method != message.method:
            return [f"method: expected {script.method}, got {message.method}"]
        recorded = self._meaning(script.method, script.params, whole)
        actual = self._meaning(message.method, message.params, whole)
        return [*match.differences(matchers.literal(matchers.redacted(recorded)), actual, "params")]

    def _meaning(self, method: str, params: JsonObject, whole: bool = True) -> JsonObject:
        """Return the params that decide about the response."""
        if (negotiated := self.negotiates(method)) is not None:
            return {name: value for name, value in params.items() if name == negotiated}
        meta = params.get("_meta")
        # Some clients send empty arguments where others leave them out.
        rest: JsonObject = {name: value for name, value in params.items() if name != "_meta" and value != {}}
        kept: JsonObject = {}
        if isinstance(meta, dict) and whole:
            kept = {key: value for key, value in meta.items() if key not in self.client_metadata}
        return {**rest, "_meta": kept} if kept else rest

    def _pools(self, revision: Revision, method: str) -> Iterator[list[Script]]:
        """Yield the scripts of ``method`` in the era of ``revision``, then those of the other era."""
        stateless = eras.is_stateless(revision)
        own = [each for each in self.recording.requests if each.method == method]
        yield [each for each in own if eras.is_stateless(each.revision) == stateless]
        linked = {} if stateless else {each.number: each for each in self.recording.linked}
        other = [each for each in own if eras.is_stateless(each.revision) != stateless and not is_retry(each)]
        if not self.negotiates(method):
            yield [linked.get(each.number, each) for each in other]

    def negotiates(self, method: str) -> str | None:
        """Return the param with which ``method`` negotiates a revision; None for other methods."""
        return self.spec["negotiation"]["version_params"].get(method)

    def named_by(self, method: str) -> str | None:
        """Return the param that names the tool or prompt of a request; None for other methods."""
        tables = [revision["methods"] for revision in self.spec["revisions"].values()]
        rows = [table[method] for table in tables if method in table]
        has_arguments = any("arguments" in answers.properties(row.get("params")) for row in rows)
        return next((row["named_by"] for row in rows if "named_by" in row), None) if has_arguments else None


def answer_differences(recorded: JsonObject, actual: JsonObject) -> list[str]:
    """Return how a client's answer to a question differs from the recorded one. The texts of errors do not count."""
    if "error" in recorded and "error" in actual:
        return []
    expected: JsonObject = {"result": _plain(recorded)} if "result" in recorded else {"error": {}}
    given: JsonObject = {"result": _plain(actual)} if "result" in actual else {"error": {}}
    return [*match.differences(matchers.literal(matchers.redacted(expected)), given)]


def _plain(response: JsonObject) -> JsonValue:
    result = response["result"]
    return {key: value for key, value in result.items() if key != "_meta"} if isinstance(result, dict) else result
