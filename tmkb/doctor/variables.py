"""Replace variables in the texts of an entry as its client does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tmkb.clients.machine import Machine

# A name in each of the forms in which clients write it. `clients/*.yaml` names the form under `expands`.
_FORMS = {
    "shell": re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}"),
    "dollar": re.compile(r"\$(?:\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|(?P<bare>[A-Za-z_]\w*))"),
    "editor": re.compile(r"\$\{(?:env:(?P<name>[A-Za-z_]\w*)|(?P<known>\w+)(?::[^}]*)?)\}"),
    "braces": re.compile(r"\{env:(?P<name>[A-Za-z_]\w*)\}"),
}
_ANY = re.compile(r"\$\{[^}]*\}|\{env:\w+\}|\$[A-Z_][A-Z0-9_]*\b|%[A-Za-z_]\w*%")


@dataclass
class Expansion:
    """Replaces variables.

    Attributes:
        form: a key of `_FORMS`; empty if the client replaces nothing.
        unset: the names of variables without a value.
        literal: texts that look like variables and stay as they are.
        asked: names of values that the client asks its user for.
    """

    form: str
    machine: Machine
    unset: list[str] = field(default_factory=list)
    literal: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def text(self, text: str) -> str:
        """Return ``text`` with the values of its variables; those without a value stay."""
        if self.form:
            text = _FORMS[self.form].sub(self._value, text)
        missing = {f"${{{name}}}" for name in (*self.unset, *self.asked)}
        self.literal += [match[0] for match in _ANY.finditer(text) if match[0] not in missing]
        return text

    def _value(self, match: re.Match[str]) -> str:
        groups = match.groupdict()
        if known := groups.get("known"):
            return self._known(known, match[0])
        name = str(groups.get("name") or groups.get("bare"))
        environment: Mapping[str, str] = self.machine.environment
        value = environment.get(name, groups.get("default"))  # an empty value counts: clients ask whether it is set
        if value is None:
            self.unset.append(name)
            return f"${{{name}}}"
        return value

    def _known(self, name: str, whole: str) -> str:
        folders = {"workspaceFolder": self.machine.folder, "userHome": self.machine.home, "pathSeparator": "/"}
        if name in folders:
            return folders[name]
        self.asked.append(name)
        return f"${{{name}}}" if name != "input" else whole
