"""Changes one value in a YAML file and nothing else: comments, order and layout stay (ruamel.yaml)."""

from __future__ import annotations

import io
import json
import os
import tempfile
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, SingleQuotedScalarString

from tmkb.document import Path
from tmkb.values import JsonValue

_SHORT = 96  # characters of a value that stays on one line
_UNFOLDED = 1 << 20  # strings are never folded: the fold is where they would be changed


def replace(file: str, path: Path, value: JsonValue) -> None:
    """Put ``value`` at ``path``, which has to be there. The file is replaced at once or not at all."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _UNFOLDED
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    with open(file, encoding="utf-8") as source:
        root: Any = yaml.load(source)
    parent: Any = root
    for part in path[:-1]:
        parent = parent[part]
    parent[path[-1]] = _styled(value, block=True)
    text = io.StringIO()
    yaml.dump(root, text)
    _write(file, text.getvalue())


def _styled(value: JsonValue, block: bool = False) -> Any:
    """``value`` as ruamel writes it: on one line where it is short, else a line for each part."""
    if isinstance(value, str):
        return _string(value)
    if not isinstance(value, dict | list):
        return value
    made: Any = (
        CommentedMap({_string(key): _styled(inner) for key, inner in value.items()})
        if isinstance(value, dict)
        else CommentedSeq([_styled(inner) for inner in value])
    )
    if not value or not (block or len(json.dumps(value, ensure_ascii=False)) > _SHORT):
        made.fa.set_flow_style()
    return made


def _string(text: str) -> Any:
    """Bare words stay bare; all else is quoted, so that no reader takes it for something different."""
    bare = text.replace("_", "").replace("/", "").replace("$", "")
    if bare.isascii() and bare.isalpha() and text not in ("null", "true", "false"):
        return text
    return SingleQuotedScalarString(text) if '"' in text and text.isprintable() else DoubleQuotedScalarString(text)


def _write(file: str, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(file) or ".", suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as target:
        target.write(text)
    os.chmod(temporary, os.stat(file).st_mode)
    os.replace(temporary, file)
