"""Characters that a reader does not see, or that steer a terminal: found, named, and escaped.

They can hide instructions from a person that a model still reads (Unicode Technical Standard #39, section 5;
CVE-2021-42574), and a terminal obeys some of them (ECMA-48). Line feeds and tabs are the only ones that texts need.
"""

from __future__ import annotations

import re
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Unicode categories Cc, Cf, Cs, Co, Zl and Zp, and the other code points with the property Default_Ignorable.
# Left out: U+FE0F, which stands behind many emoji and can say nothing by itself.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0e\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


def find(text: str) -> str:
    """Return the first hidden character of ``text``; an empty string if there is none."""
    found = _HIDDEN.search(text)
    return found[0] if found else ""


def places(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield line, column (both from 1) and character for each line's first hidden character.

    ``text`` is the content of a file; a carriage return before a line feed belongs to the end of the line.
    """
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if found := _HIDDEN.search(line):
            yield number, found.start() + 1, found[0]


def describe(character: str) -> str:
    """Return code point and name, such as ``U+202E RIGHT-TO-LEFT OVERRIDE``."""
    name = unicodedata.name(character, _KINDS.get(unicodedata.category(character), ""))
    return f"U+{ord(character):04X} {name}"


def escape(text: str) -> str:
    r"""Return ``text`` with ``\u001b`` and the like for hidden characters, as JSON and Python write them."""
    return _HIDDEN.sub(lambda found: _escaped(ord(found[0])), text)


def line(text: str) -> str:
    r"""Return ``text`` as one line: hidden characters escaped, and ``\n`` for line feeds, which could forge a line."""
    return escape(text).replace("\n", "\\n")


def _escaped(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)  # JSON has no longer form
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_KINDS = {
    "Cc": "(control character)",
    "Cn": "(unassigned)",
    "Co": "(private use)",
    "Cs": "(half of a surrogate pair)",
}
