"""Types of the values in JSON and in our YAML, and the decorator of immutable values."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 # re-exported
else:

    def dataclass(*, frozen):
        """Make a named tuple of the annotated fields: importing `dataclasses` would slow down each start."""

        def decorate(body):
            fields = body.__annotations__
            defaults = [getattr(body, field) for field in fields if hasattr(body, field)]
            made = namedtuple(body.__name__, fields, defaults=defaults)
            made.__doc__, made.__module__ = body.__doc__, body.__module__
            return made

        return decorate


JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]
