"""Types of the values in JSON and in our YAML, and the decorator of immutable values."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar, dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True)
    def record(body: type[T]) -> type[T]: ...
else:

    def record(body):
        """Make an immutable class of the annotated fields: importing `dataclasses` would slow down each start."""
        fields = body.__annotations__
        defaults = [getattr(body, field) for field in fields if hasattr(body, field)]
        made = namedtuple(body.__name__, fields, defaults=defaults)
        made.__doc__, made.__module__ = body.__doc__, body.__module__
        made.__eq__, made.__ne__, made.__hash__ = _equal, _unequal, _hash
        return made

    def _equal(self, other):
        return type(self) is type(other) and tuple.__eq__(self, other)

    def _unequal(self, other):
        return type(self) is not type(other) or tuple.__ne__(self, other)

    def _hash(self):
        return hash((type(self), *self))


JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]
