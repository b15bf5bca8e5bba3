"""The functions that use private modules of Python do what the public ones do."""

import json
import math
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb import Server, stdlib

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.booleans(), inner),
    max_leaves=20,
)
OPTIONS = [{}, {"ensure_ascii": True}, {"allow_nan": False}, {"ensure_ascii": True, "allow_nan": False}]
NOT_JSON = [
    "",
    " ",
    "[",
    "[1,]",
    "{'a': 1}",
    '{"a" 1}',
    "1 2",
    "nul",
    '"\n"',
    '"\\x"',
    "\ufeff1",
    "\xa01",
    "01",
    "-",
    "9" * 5000,
]
JSON = [
    "\t\r\n 1\n",
    "NaN",
    "-Infinity",
    "1e999",
    "[1.5, -0.0, 1e3]",
    '{"a": 1, "a": 2}',
    '"\\ud800"',
    "[" * 50 + "]" * 50,
]


def outcome(function, value):
    """Return the result, which is unlike itself if it is NaN, or the kind of exception."""
    try:
        return repr(function(value))
    except RecursionError:
        return RecursionError
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


@given(VALUES, st.sampled_from(OPTIONS))
def test_values_are_encoded_alike(value, options):
    assert outcome(stdlib.lean_encoder(**options), value) == outcome(stdlib.public_encoder(**options), value)


@pytest.mark.parametrize("value", [{1, 2}, {"a": object()}, {(1, 2): 3}, [math.inf]])
@pytest.mark.parametrize("options", OPTIONS)
def test_what_cannot_be_encoded_is_refused_alike(value, options):
    assert outcome(stdlib.lean_encoder(**options), value) == outcome(stdlib.public_encoder(**options), value)


def test_a_circular_value_is_refused_again_and_again():
    circular = []
    circular.append(circular)
    encode = stdlib.lean_encoder()

    assert [outcome(encode, value) for value in (circular, circular, [1])] == [ValueError, ValueError, "'[1]'"]


@given(VALUES | st.text())
def test_texts_are_decoded_alike(value):
    text = value if isinstance(value, str) else stdlib.public_encoder()(value)

    assert outcome(stdlib.lean_decoder(), text) == outcome(stdlib.public_decoder(), text)


@pytest.mark.parametrize("text", [*JSON, *NOT_JSON])
def test_edges_are_decoded_alike(text):
    for options in ({}, {"parse_float": str, "parse_constant": list}):
        assert outcome(stdlib.lean_decoder(**options), text) == outcome(stdlib.public_decoder(**options), text)


@pytest.mark.process
def test_texts_are_refused_before_json_is_imported():
    code = (
        "import sys; from tmkb import stdlib\n"
        "for text in sys.argv[1:]:\n"
        "    for name in ('json', 'json.decoder'): sys.modules.pop(name, None)\n"
        "    try: stdlib.decoder()(text)\n"
        "    except ValueError: print('refused')\n"
    )
    words = [text for text in NOT_JSON if text.startswith(("[", "{", '"'))]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["refused"] * len(words)


@pytest.mark.process
def test_a_start_from_the_cache_imports_no_slow_module():
    code = (
        "import sys; before = {*sys.modules}; from tmkb.cli import serve; serve.serve({})\n"
        "print(*{*sys.modules} - before, file=sys.stderr)"
    )
    first = {"protocolVersion": "2025-11-25", "capabilities": {}}
    lines = [
        {"id": 0, "method": "initialize", "params": first},
        {"method": "notifications/initialized"},
        {
            "id": 1,
            "method": "tools/call",
            "params": {"name": "tmkb_query", "arguments": {"context": "Background jobs"}},
        },
    ]
    given = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    Server.load()  # now there is a cache
    done = subprocess.run(
        [sys.executable, "-c", code], input=given, env=plain, capture_output=True, text=True, check=True
    )

    assert '"isError":false' in done.stdout
    loaded = {*done.stderr.splitlines()[-1].split()}
    assert not loaded & {
        "json",
        "re",
        "enum",
        "functools",
        "collections",
        "contextlib",
        "dataclasses",
        "typing",
        "signal",
    }


@pytest.mark.process
def test_another_python_uses_the_public_modules():
    """Serve with an interpreter that says that it is not CPython."""
    code = (
        "import sys, types; from tmkb.cli import main\n"
        "sys.implementation = types.SimpleNamespace(**{**vars(sys.implementation), 'name': 'other'})\n"
        "from tmkb import stdlib; assert not stdlib.IS_LEAN\n"
        "main.main(['serve'])"
    )
    ask = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    done = subprocess.run([sys.executable, "-c", code], input=ask, capture_output=True, check=True, env=os.environ)

    assert done.stdout == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
