"""What a tools/call is answered with, in the style that the server names. Which of it is sent stands in the revision.

plain: what the protocol has. envelope: beside that `success`, and `data` or `error` with its code, message and details;
the same as a text in `content`, and in `structuredContent`.
"""

from __future__ import annotations

from tmkb.protocol import messages
from tmkb.providers.operation import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tmkb.protocol.refusal import Failure
    from tmkb.schema.model import Server
    from tmkb.schema.values import JsonObject, JsonValue

    Succeeded = Callable[[Any, Result | JsonValue], JsonObject]  # tool, outcome
    Failed = Callable[[list[Failure]], JsonObject]

_MOST = 10  # failures that an envelope tells in full


def succeeded(server: Server, tool: Any, outcome: Result | JsonValue) -> JsonObject:
    """The result of a call that an operation of ``tool`` has answered."""
    return STYLES[server.get("results", "plain")][0](tool, outcome)


def failed(server: Server, failures: list[Failure]) -> JsonObject:
    """The result of a call that was refused, or has failed."""
    return STYLES[server.get("results", "plain")][1](failures)


def _plain(tool: Any, outcome: Result | JsonValue) -> JsonObject:
    """An operation's own result; a value as a text, and as it is where the tool promises a form."""
    if not isinstance(outcome, Result):
        text = outcome if isinstance(outcome, str) else messages.compact(outcome)
        structured = outcome if "output" in tool and isinstance(outcome, dict) else None
        outcome = Result([{"type": "text", "text": text}], structured=structured)
    values: Any = {"content": outcome.content, "isError": outcome.is_error}
    if outcome.structured is not None:
        values["structuredContent"] = outcome.structured
    return values if outcome.meta is None else {**values, "_meta": outcome.meta}


def _plainly_failed(failures: list[Failure]) -> JsonObject:
    """One line for each."""
    return {"content": _text("\n".join(failure.sentence for failure in failures)), "isError": True}


def _enveloped(tool: Any, outcome: Result | JsonValue) -> JsonObject:
    """An operation's value, or of its own result the structured part, else the content, as `data`."""
    if not isinstance(outcome, Result):
        return _envelope({"success": True, "data": outcome})
    data: Any = outcome.content if outcome.structured is None else outcome.structured
    values = _envelope({"success": not outcome.is_error, "error" if outcome.is_error else "data": data})
    return values if outcome.meta is None else {**values, "_meta": outcome.meta}


def _failure_enveloped(failures: list[Failure]) -> JsonObject:
    """The first of them; where there are more, all of them in its details."""
    told = [_error(failure) for failure in failures[:_MOST]]
    if len(told) > 1:
        details = told[0].get("details")
        told[0] = {**told[0], "details": {**(details if isinstance(details, dict) else {}), "errors": [*told]}}
    return _envelope({"success": False, "error": told[0]})


def _error(failure: Failure) -> JsonObject:
    error: JsonObject = {"code": failure.code, "message": failure.sentence}
    return error if failure.data is None else {**error, "details": failure.data}


def _envelope(envelope: JsonObject) -> JsonObject:
    text: Any = _text(messages.compact(envelope))
    return {**envelope, "content": text, "isError": not envelope["success"], "structuredContent": envelope}


def _text(text: str) -> JsonValue:
    return [{"type": "text", "text": text}]


STYLES: dict[str, tuple[Succeeded, Failed]] = {
    "envelope": (_enveloped, _failure_enveloped),
    "plain": (_plain, _plainly_failed),
}
