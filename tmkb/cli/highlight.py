"""Highlight strings, comments and keywords of source code. Each language is one regular expression."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

Span = tuple[str, str]  # text and style; the style may be empty

_STRING = r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\""
_DOCSTRING = r"'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\""
_TEMPLATE = r"`(?:\\.|[^`\\])*`"
_BRACES = (  # keywords of languages with braces
    "abstract|as|async|await|break|case|catch|class|const|continue|default|defer|delete|do|else|enum|export|extends|"
    "false|final|finally|fn|for|foreach|from|fun|func|function|go|if|implements|import|in|interface|let|namespace|new|"
    "nil|null|override|package|private|protected|public|range|readonly|record|return|static|struct|super|switch|this|"
    "throw|throws|true|try|type|undefined|use|using|val|var|void|when|while|yield"
)
_RUBY = (
    "and|begin|break|case|class|def|do|else|elsif|end|ensure|false|if|in|include|module|next|nil|not|or|rescue|return|"
    "self|super|then|true|unless|until|when|while|yield"
)
_SQL = (
    "alter|and|as|begin|by|check|create|default|delete|drop|each|else|end|exists|for|from|function|grant|group|in|"
    "insert|into|is|join|key|language|not|null|on|or|order|policy|primary|references|return|returns|revoke|row|select|"
    "set|table|then|to|trigger|true|update|using|values|when|where|with"
)
_LIKE_C = (
    rf"(?P<dim>(?<!:)//.*|/\*[\s\S]*?\*/)|(?P<green>{_STRING}|{_TEMPLATE})|(?P<magenta>(?<![\w.$])(?:{_BRACES})\b(?!:))"
)
_EXPRESSIONS = {  # language → an expression whose groups are named like styles
    **dict.fromkeys(("csharp", "go", "java", "javascript", "kotlin", "php", "typescript"), _LIKE_C),
    "diff": r"(?P<bold>^(?:---|\+\+\+) .*)|(?P<cyan>^@@.*)|(?P<green>^\+.*)|(?P<red>^-.*)",
    "json": r'(?P<cyan>"(?:\\.|[^"\\])*"(?=:))|(?P<green>"(?:\\.|[^"\\])*")',
    "python": rf"(?P<dim>#.*)|(?P<green>{_DOCSTRING}|{_STRING})"
    rf"|(?P<magenta>@[\w.]+|\b(?:{'|'.join(keyword.kwlist)})\b)",
    "ruby": rf"(?P<dim>(?<!\S)#.*)|(?P<green>{_STRING})|(?P<magenta>(?<![\w.:@])(?:{_RUBY})\b(?![?!:]))",
    "sql": rf"(?P<dim>--.*)|(?P<green>'(?:''|[^'])*')|(?P<magenta>\b(?:{_SQL}|{_SQL.upper()})\b)",
    "yaml": rf"(?P<dim>(?:^|(?<=\s))#.*)|(?P<green>{_DOCSTRING}|{_STRING})"
    r"|(?P<cyan>(?<![^\s{,])[\w$./-]+(?=:(?:\s|$)))",
}


def spans(source: str, language: str) -> Iterator[Span]:
    """Yield ``source`` in parts with their styles. An unknown ``language`` has no styles."""
    at = 0
    for match in re.finditer(_EXPRESSIONS.get(language, "(?!)"), source, re.MULTILINE):
        yield source[at : match.start()], ""
        yield match[0], match.lastgroup or ""
        at = match.end()
    yield source[at:], ""
