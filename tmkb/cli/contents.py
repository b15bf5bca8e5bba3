"""Render what a server sends as content: text, images, audio, resources and links."""

from __future__ import annotations

import binascii
import contextlib
import json
import sys
from collections.abc import Iterable
from typing import Any

from tmkb.cli.layout import Line, code, text
from tmkb.schema.values import JsonValue


def blocks(content: JsonValue, structured: JsonValue = None) -> list[Line]:
    """Render content blocks; without a text among them also ``structured``, the structured result."""
    listed: list[Any] = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    lines = [line for each in listed for line in block(each)]
    if structured is not None and not any(each.get("type") == "text" for each in listed):
        lines += code(json.dumps(structured, indent=2, ensure_ascii=False), "json")
    return lines or text(("No content.", "dim"))


def block(value: Any) -> list[Line]:
    """Render one content block: text as it is, other content by its kind, type and size."""
    if isinstance(value.get("text"), str):
        return _text(value["text"])
    if isinstance(value.get("resource"), dict):
        return resource(value["resource"])
    if isinstance(value.get("uri"), str):
        return text(_joined([value["uri"], value.get("name"), value.get("mimeType"), value.get("description")]))
    return text((f"[{_joined([value.get('type'), value.get('mimeType'), size(value.get('data'))])}]", "dim"))


def resource(value: Any) -> list[Line]:
    """Render the contents of a resource: text as it is, or the size of a blob."""
    if isinstance(value.get("text"), str):
        return _text(value["text"])
    return text((f"[{_joined([value.get('uri'), value.get('mimeType'), size(value.get('blob'))])}]", "dim"))


def _text(content: str) -> list[Line]:
    """Render a text as it is; on a terminal, JSON with indentation."""
    if sys.stdout.isatty() and content[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            return code(json.dumps(json.loads(content), indent=2, ensure_ascii=False), "json")
    return text(content, wraps=False)


def size(data: Any) -> str:
    """Return the size of base64 ``data`` in words."""
    if not isinstance(data, str):
        return "no data"
    try:
        return f"{len(binascii.a2b_base64(data, strict_mode=True)):,} bytes"
    except (ValueError, binascii.Error):
        return "data that is not base64"


def _joined(parts: Iterable[Any]) -> str:
    return "  ".join(part for part in parts if isinstance(part, str) and part)
