"""Parts of the standard library without the imports of their modules, for which a client would wait at each start.

`json` imports `re`, `signal` imports `enum`, and `collections` four others; together they take longer than the start of
the interpreter. All of them only wrap modules in C. Those are private, so they are used only by the versions of Python
that are tested; any other gets the public modules. `tests/test_stdlib.py` compares both.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Decode = Callable[[str], Any]
    Encode = Callable[[object], str]

IS_LEAN = sys.implementation.name == "cpython" and sys.version_info < (3, 15)

__all__ = [
    "GeneratorType",
    "Mapping",
    "OrderedDict",
    "decoder",
    "deque",
    "encoder",
    "itemgetter",
    "loads",
    "signal",
    "tuple_field",
]

if TYPE_CHECKING or not IS_LEAN:
    import signal
    from collections import OrderedDict, deque
    from collections.abc import Mapping
    from operator import itemgetter
    from types import GeneratorType

    def tuple_field(number: int) -> Any:
        """Return the attribute of a subclass of tuple that is its item ``number``."""
        return property(itemgetter(number))

else:
    import _signal as signal
    from _collections import OrderedDict, _tuplegetter, deque
    from _collections_abc import Mapping
    from _operator import itemgetter

    GeneratorType = type(each for each in ())

    def tuple_field(number):  # noqa: D103, the other one has it
        return _tuplegetter(number, None)


_SPACE = " \t\n\r"


def public_decoder(parse_float: Callable[[str], float] = float, parse_constant: Callable[[str], Any] = float) -> Decode:
    """Return `json.JSONDecoder.decode`. It raises ValueError and RecursionError."""
    import json

    return json.JSONDecoder(parse_float=parse_float, parse_constant=parse_constant).decode


def public_encoder(ensure_ascii: bool = False, allow_nan: bool = True) -> Encode:
    """Return `json.JSONEncoder.encode` for compact JSON. It raises ValueError, TypeError and RecursionError."""
    import json

    return json.JSONEncoder(separators=(",", ":"), ensure_ascii=ensure_ascii, allow_nan=allow_nan).encode


class _Scanner:
    """The options of a decoder, as `_json` reads them."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_int = int

    def __init__(self, parse_float: Callable[[str], float], parse_constant: Callable[[str], Any]) -> None:
        self.parse_float = parse_float
        self.parse_constant = parse_constant


def lean_decoder(parse_float: Callable[[str], float] = float, parse_constant: Callable[[str], Any] = float) -> Decode:
    """Return a function that does what that of `public_decoder` does."""
    from _json import make_scanner

    options: Any = _Scanner(parse_float, parse_constant)
    scan = make_scanner(options)

    def decode(text: str) -> Any:
        text = text.strip(_SPACE)
        try:
            value, end = scan(text, 0)
        except StopIteration:
            raise ValueError("There is no JSON value.") from None
        except SystemError:  # invalid JSON: the scanner raises an exception of `json`, if that is imported
            return public_decoder(parse_float, parse_constant)(text)
        if end != len(text):
            raise ValueError("There is more than one JSON value.")
        return value

    return decode


def lean_encoder(ensure_ascii: bool = False, allow_nan: bool = True) -> Encode:
    """Return a function that does what that of `public_encoder` does."""
    from _json import encode_basestring, encode_basestring_ascii, make_encoder

    quote: Callable[[str], str] = encode_basestring_ascii if ensure_ascii else encode_basestring

    def encode(value: object) -> str:
        if isinstance(value, str):
            return quote(value)
        containers: dict[int, object] = {}  # that are being encoded, to find circular references
        pieces = make_encoder(containers, _refuse, quote, None, ":", ",", False, False, allow_nan)
        return "".join(pieces(value, 0))

    return encode


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")


decoder = lean_decoder if IS_LEAN else public_decoder
encoder = lean_encoder if IS_LEAN else public_encoder

_decode = decoder()


def loads(encoded: bytes) -> Any:
    """Decode JSON. Lone surrogates may be encoded, as in paths that are not UTF-8. Raises ValueError."""
    return _decode(encoded.decode("utf-8", "surrogatepass"))
