"""Find, describe and escape characters that are invisible or that control a terminal.

They can hide instructions from a person that a model still reads (Unicode Technical Standard #39, section 5;
CVE-2021-42574), and terminals execute some of them (ECMA-48). Line feeds and tabs are allowed.
"""

from __future__ import annotations

import re
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Unicode categories Cc, Cf, Cs, Co, Zl and Zp, and the other code points with the property Default_Ignorable.
# Without U+FE0F, which follows many emoji and is harmless alone.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0e\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


def is_unicode(text: str) -> bool:
    """Return whether ``text`` has no lone surrogates, which JSON can contain and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find(text: str) -> str:
    """Return the first hidden character of ``text``; an empty string if there is none."""
    match = _HIDDEN.search(text)
    return match[0] if match else ""


def places(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield line, column (both from 1) and character of the first hidden character in each line of ``text``.

    A carriage return before a line feed is part of the line end.
    """
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if match := _HIDDEN.search(line):
            yield number, match.start() + 1, match[0]


def describe(character: str) -> str:
    """Return the code point and the name, such as ``U+202E RIGHT-TO-LEFT OVERRIDE``."""
    name = unicodedata.name(character, _KINDS.get(unicodedata.category(character), ""))
    return f"U+{ord(character):04X} {name}"


def escape(text: str) -> str:
    r"""Return ``text`` with hidden characters escaped as in JSON and Python, such as ``\u001b``."""
    return _HIDDEN.sub(lambda match: _escaped(ord(match[0])), text)


def line(text: str) -> str:
    r"""Return ``text`` as one line: hidden characters escaped, and ``\n`` for line feeds, which could forge a line."""
    return escape(text).replace("\n", "\\n")


def _escaped(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)  # JSON escapes have four digits
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_KINDS = {
    "Cc": "(control character)",
    "Cn": "(unassigned)",
    "Co": "(private use)",
    "Cs": "(half of a surrogate pair)",
}
