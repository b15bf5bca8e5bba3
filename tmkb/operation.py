"""What an operation may give back. Operations are plain functions: ``(**arguments) → Result | JSON value``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tmkb.values import JsonObject, JsonValue


class Result:
    """An answer whose form the operation decides: content blocks as the protocol has them, and facts for the log."""

    __slots__ = ("content", "encoded", "facts", "is_error")

    def __init__(self, content: list[JsonObject], is_error: bool = False, facts: JsonObject | None = None) -> None:
        self.content = content
        self.is_error = is_error
        self.facts = facts or {}
        self.encoded: bytes | None = None  # as the engine has sent it, for an answer that is sent again


if TYPE_CHECKING:
    Operation = Callable[..., Result | JsonValue]
