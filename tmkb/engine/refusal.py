"""Error id + fields → what goes on the wire, and the sentences that the log repeats. The words are the spec's."""

from __future__ import annotations

from tmkb import template
from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.errors import ToolError
    from tmkb.spec.model import ErrorTemplate
    from tmkb.values import JsonObject


def wire_error(error: ProtocolError, errors: dict[str, ErrorTemplate]) -> JsonObject:
    """The ``error`` member of a response: code, message, and data where the template asks for it."""
    found = errors[error.error]
    wire: JsonObject = {"code": found["code"], "message": sentence(error, errors)}
    if "data" in found:
        wire["data"] = {name: error.fields[name] for name in found["data"]}
    return wire


def need_extension(declared: JsonObject, extension: str) -> None:
    """Raises ProtocolError where a client does not declare ``extension``."""
    extensions = declared.get("extensions", {})
    if not isinstance(extensions, dict) or extension not in extensions:
        required: JsonObject = {"extensions": {extension: {}}}
        raise ProtocolError("client_lacks_capability", capability=extension, requiredCapabilities=required)


def call_result(sentences: list[str]) -> JsonObject:
    """The result of a tools/call that was refused: one line a sentence."""
    return {"content": [{"type": "text", "text": "\n".join(sentences)}], "isError": True}


def sentence(error: ProtocolError | ToolError, errors: dict[str, ErrorTemplate]) -> str:
    """What ``error`` says; strings, which may come from the peer, are cut."""
    fields = {name: template.cut(v) if isinstance(v, str) else v for name, v in error.fields.items()}
    return template.fill(errors[error.error]["message"], fields)
