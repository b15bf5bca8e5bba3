"""Types of the values in JSON and in our YAML, and the decorator of immutable values."""

from __future__ import annotations

from tmkb.stdlib import tuple_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar, dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True)
    def record(body: type[T]) -> type[T]: ...  # noqa: D103, the other one has it
else:

    def record(body):
        """Make an immutable class of the annotated fields: importing `dataclasses` would slow down each start."""
        fields = {field: tuple_field(number) for number, field in enumerate(body.__annotations__)}
        names = {"__slots__": (), "__doc__": body.__doc__, "__module__": body.__module__, "__match_args__": (*fields,)}
        made = type(body.__name__, (_Record,), {**names, **fields})
        made._defaults = tuple(getattr(body, field) for field in fields if hasattr(body, field))
        return made

    class _Record(tuple):
        """A tuple with named fields. Its constructor is compiled at the first use, because most starts use few."""

        __slots__ = ()

        def __new__(cls, /, *values, **named):
            fields = ", ".join(cls.__match_args__)
            made = eval(f"lambda cls, /, {fields}: new(cls, ({fields},))", {"new": tuple.__new__})
            made.__defaults__, made.__name__ = cls._defaults, cls.__name__
            cls.__new__ = staticmethod(made)
            return cls(*values, **named)

        def __getnewargs__(self):
            return (*self,)

        def __repr__(self):
            named = zip(self.__match_args__, self, strict=True)
            return f"{type(self).__name__}({', '.join(f'{field}={value!r}' for field, value in named)})"

        def __eq__(self, other):
            return type(self) is type(other) and tuple.__eq__(self, other)

        def __ne__(self, other):
            return type(self) is not type(other) or tuple.__ne__(self, other)

        def __hash__(self):
            return hash((type(self), *self))


JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]
