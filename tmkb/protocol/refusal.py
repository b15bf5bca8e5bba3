"""Error id + fields → what a peer is told, and what goes on the wire of it. The words are the spec's."""

from __future__ import annotations

from tmkb.errors import ProtocolError
from tmkb.schema import template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tmkb.errors import ToolError
    from tmkb.schema.model import ErrorTemplate
    from tmkb.schema.values import JsonObject, JsonValue


class Failure:
    """What a peer is told of one thing that went wrong: a sentence, the code of its error, and data, if any."""

    __slots__ = ("code", "data", "sentence")

    def __init__(self, found: ErrorTemplate, shown: Mapping[str, JsonValue], fields: Mapping[str, JsonValue]) -> None:
        """``shown``: the fields as they may stand in the sentence; ``fields``: as they are."""
        self.sentence = template.fill(found["message"], shown)
        self.code: int | str | None = found.get("code")
        self.data: JsonValue = None
        if "data" in found:
            data = found["data"]
            named: JsonValue = {name: {"$value": name} for name in data} if isinstance(data, list) else data
            self.data = template.fill_tree(named, fields)


def failure(error: ProtocolError | ToolError, errors: Mapping[str, ErrorTemplate]) -> Failure:
    """What ``error`` says; strings, which may come from the peer, are cut in the sentence."""
    return Failure(errors[error.error], template.cut_values(error.fields), error.fields)


def wire_error(told: Failure) -> JsonObject:
    """The ``error`` member of a response: code, message, and data where there is any."""
    return {"code": told.code, "message": told.sentence} | ({} if told.data is None else {"data": told.data})


def need_extension(declared: JsonObject, extension: str) -> None:
    """Raises ProtocolError where a client does not declare ``extension``."""
    extensions = declared.get("extensions", {})
    if not isinstance(extensions, dict) or extension not in extensions:
        required: JsonObject = {"extensions": {extension: {}}}
        raise ProtocolError("client_lacks_capability", capability=extension, requiredCapabilities=required)
