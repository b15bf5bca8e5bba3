"""What a recording leaves out, and what it has to keep."""

import base64
import json
import os
import re

import pytest

from tmkb.conformance import transcript
from tmkb.conformance.redaction import Redactor, is_secret
from tmkb.schema import paths

WORD = "Zq7Xv2Lm9Tn4Rb6Kp8"  # of letters and digits, without the shape of any key


def b64(text):
    return base64.b64encode(text.encode()).decode()


# Kind → a text and the secret in it. Put together from parts, so that no scanner takes this file for a leak.
PLANTED = {
    "bearer": ("Authorization: " + "Bearer " + WORD, WORD),
    "basic": ("sent " + "Basic " + b64("user:" + WORD), b64("user:" + WORD)),
    "jwt": ("got eyJhbGciOi." + "eyJzdWIiOiIx." + WORD, WORD),
    "aws": ("id AKIA" + "Q7XV2LM3TN4RB6KP", "AKIA" + "Q7XV2LM3TN4RB6KP"),
    "github": ("use ghp" + "_" + WORD * 2, WORD * 2),
    "gitlab": ("use glpat" + "-" + WORD + "ab", WORD),
    "slack": ("use xoxb" + "-1234-" + WORD, WORD),
    "slack_webhook": ("https://hooks.slack" + ".com/services/T00/B00/" + WORD, WORD),
    "stripe": ("use sk" + "_live_" + WORD, WORD),
    "google": ("use AIza" + WORD + WORD[:17], WORD),
    "llm": ("use sk" + "-ant-api03-" + WORD + WORD, WORD),
    "huggingface": ("use hf" + "_" + WORD * 2, WORD),
    "npm": ("use npm" + "_" + WORD * 2, WORD),
    "pypi": ("use pypi" + "-" + WORD * 4, WORD),
    "sendgrid": ("use SG" + "." + WORD + "." + WORD, WORD),
    "digitalocean": ("use dop" + "_v1_" + "a1" * 32, "a1" * 32),
    "telegram": ("use 123456789" + ":AA" + (WORD * 2)[:33], WORD),
    "private_key": ("-----BEGIN RSA " + "PRIVATE KEY-----\n" + WORD + "\n-----END RSA " + "PRIVATE KEY-----", WORD),
    "connection": ("postgres://app:" + WORD + "@db/shop", WORD),
    "card": ("pay with 4111 1111 " + "1111 1111 now", "1111 1111 1111"),
    "name": ("password=" + WORD, WORD),
}


def request(**arguments):
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": arguments}}


@pytest.fixture
def redactor():
    return Redactor({})


def test_every_kind_has_an_example():
    rules = transcript.checked(os.path.join(paths.CONFORMANCE, "redaction.yaml"), "redaction")

    assert {*rules["shapes"]} == {*PLANTED} - {"name"}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize(
    "place",
    [
        lambda text: request(text=text),
        lambda text: request(texts=["first", {"inner": text}]),
        lambda text: request(**{text: 1}),
        lambda text: request(text=json.dumps({"inner": [text]})),
        lambda text: request(text=json.dumps({"inner": json.dumps({"more": text}, indent=2)}, indent=1)),
        lambda text: request(text="log: " + json.dumps({"inner": text}) + " end"),
        lambda text: {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": f"a\n{text}\nb"}]}},
        lambda text: {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": text, "data": {"text": text}}},
        lambda text: [request(text=text)],
    ],
    ids=["value", "list", "key", "json", "json-in-json", "json-in-text", "result", "error", "batch"],
)
def test_a_secret_is_replaced_wherever_it_stands(redactor, kind, place):
    text, secret = PLANTED[kind]
    redacted = json.dumps(redactor.message(place(text)))

    assert secret not in redacted and json.dumps(secret)[1:-1] not in redacted
    if kind != "name":
        assert redactor.counts[kind] == 1


@pytest.mark.parametrize("kind", PLANTED)
def test_a_secret_is_replaced_in_a_line_that_is_no_json(redactor, kind):
    text, secret = PLANTED[kind]

    assert secret.encode() not in redactor.line(f"log \xff {text}".encode("latin-1"))


@pytest.mark.parametrize(
    "name",
    ["password", "API_KEY", "apiKey", "X-Api-Key", "client_secret", "accessToken", "access_token", "Authorization",
     "Set-Cookie", "PGPASSWORD", "db.password", "private-key", "userPwd", "OPENAI_API_KEY", "authToken", "cvv"],
)  # fmt: skip
def test_names_of_secrets(redactor, name):
    assert is_secret(name)
    assert redactor.message(request(**{name: "swordfish"})) == request(**{name: "REDACTED-1"})


@pytest.mark.parametrize(
    "name",
    [
        "maxTokens",
        "max_tokens",
        "progressToken",
        "nextPageToken",
        "tokenizer",
        "key",
        "author",
        "secretary",
        "input_tokens",
    ],
)
def test_names_of_other_things(redactor, name):
    assert not is_secret(name)
    assert redactor.message(request(**{name: "swordfish"})) == request(**{name: "swordfish"})


def test_escapes_hide_nothing(redactor):
    text = '{"\\u0070assword": "sword\\u0066ish", "other": "' + "ghp\\u005f" + WORD * 2 + '"}'

    assert redactor.message(request(text=text)) == request(
        text='{"\\u0070assword": "REDACTED-1", "other": "REDACTED-2"}'
    )


def test_a_secret_has_one_placeholder_everywhere(redactor):
    first = redactor.message(request(password=WORD))
    second = redactor.message({"jsonrpc": "2.0", "id": 2, "result": {"text": f"hello {WORD}!"}})

    assert first == request(password="REDACTED-1")
    assert second["result"] == {"text": "hello REDACTED-1!"}
    assert redactor.counts == {"name": 1}


def test_an_ordinary_word_under_the_name_of_a_secret_is_replaced_only_there(redactor):
    assert redactor.message(request(token="string", type="string")) == request(token="REDACTED-1", type="string")


def test_numbers_under_the_name_of_a_secret(redactor):
    assert redactor.message(request(pin=123456, token=3, secret=True)) == request(
        pin="REDACTED-1", token=3, secret=True
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([["X-Api-Key", "swordfish"], ["Accept", "text"]], [["X-Api-Key", "REDACTED-1"], ["Accept", "text"]]),
        (["token", "code"], ["token", "code"]),
        ([{"name": "DB_PASSWORD", "value": "swordfish"}], [{"name": "DB_PASSWORD", "value": "REDACTED-1"}]),
        ([{"name": "X-Api-Key", "value": 12345678}], [{"name": "X-Api-Key", "value": "REDACTED-1"}]),
        ({"passwords": [12345678, 3]}, {"passwords": ["REDACTED-1", 3]}),
        ([{"name": "token", "description": "swordfish"}], [{"name": "token", "description": "swordfish"}]),
        ("user: bob, password: sword1fish", "user: bob, password: REDACTED-1"),
        ("{'user': 'bob', 'password': 'swordfish'}", "{'user': 'bob', 'password': 'REDACTED-1'}"),
        ("<user>bob</user><password>swordfish</password>", "<user>bob</user><password>REDACTED-1</password>"),
        ("https://host/?a=b&access_token=swordfish&c=d", "https://host/?a=b&access_token=REDACTED-1&c=d"),
        ("password: swordfish\nuser: bob", "password: REDACTED-1\nuser: bob"),
        ("Cookie: a=b; c=d\nAccept: text", "Cookie: REDACTED-1\nAccept: text"),
    ],
)
def test_names_and_values_in_other_forms(redactor, value, expected):
    assert redactor.message(request(x=value)) == request(x=expected)


def test_members_of_a_secret_are_secrets(redactor):
    assert redactor.message(request(cookies={"lang": "swordfish"}, credentials=["swordfish"])) == request(
        cookies={"lang": "REDACTED-1"}, credentials=["REDACTED-1"]
    )


def test_what_the_protocol_needs_stays(redactor):
    like_a_token = PLANTED["llm"][0].split()[1]
    messages = [
        {"jsonrpc": "2.0", "id": like_a_token, "method": "tools/list", "params": {"cursor": like_a_token}},
        {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": {"progressToken": like_a_token}}},
        {"jsonrpc": "2.0", "method": "x", "params": {"progressToken": like_a_token, "requestId": like_a_token}},
        {"jsonrpc": "2.0", "id": like_a_token, "result": {"nextCursor": like_a_token}},
    ]

    assert [redactor.message(each) for each in messages] == messages


def test_a_schema_that_describes_a_secret_stays(redactor):
    schema = {
        "type": "object",
        "properties": {"token": {"type": "string", "description": "password=..."}, "auth": {"enum": ["basic", "none"]}},
        "required": ["token"],
    }
    result = {"tools": [{"name": "login", "inputSchema": schema, "outputSchema": {"$defs": {"secret": schema}}}]}

    assert redactor.message({"id": 1, "result": result}) == {"id": 1, "result": result}


def test_a_secret_as_default_value_in_a_schema_is_replaced(redactor):
    schema = {
        "type": "object",
        "properties": {"token": {"type": "string", "default": "swordfish"}, "x": {"default": "y"}},
    }
    redacted = redactor.message({"id": 1, "result": {"tools": [{"inputSchema": schema}]}})["result"]["tools"][0]

    assert redacted["inputSchema"]["properties"] == {
        "token": {"type": "string", "default": "REDACTED-1"},
        "x": {"default": "y"},
    }


def test_values_of_the_environment():
    environment = {"GITHUB_TOKEN": WORD, "HOME": "/srv/someone1", "MODE": "production1", "ID_SECRET": "true"}
    redactor = Redactor(environment, ["MODE"])
    text = f"{WORD} {b64(WORD)} /srv/someone1 production1 true"

    assert redactor.message(request(text=text)) == request(text="REDACTED-1 REDACTED-2 /srv/someone1 REDACTED-3 true")
    assert redactor.counts == {"environment": 3}


@pytest.mark.needs("re2")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=abc123def-hunter2secret", "password=REDACTED-1"),
        ("password: 'abc123def-hunter2secret'", "password: 'REDACTED-1'"),
        ('{"password": "abc123def-hunter2secret"}', '{"password": "REDACTED-1"}'),
        ('log: {"password": "hunter2 abc123def"} end', 'log: {"password": "REDACTED-1"} end'),
        ("password: REDACTED-style-hunter2", "password: REDACTED-1"),
        ("password=abc123def.", "password=REDACTED-1."),
        ("https://app:abc123def+hunter2@db/shop", "https://app:REDACTED-1@db/shop"),
    ],
)
def test_a_secret_that_contains_another_is_replaced_whole(text, expected):
    redacted = Redactor({"MY_TOKEN": "abc123def"}).text(text)

    assert re.sub(r"REDACTED-\d+", "REDACTED-1", redacted) == expected


def test_a_secret_that_contains_another_is_found_in_other_texts():
    redactor = Redactor({"MY_TOKEN": "abc123def"})
    redactor.text("password=abc123def-hunter2secret")

    assert "hunter2secret" not in redactor.text("they sent abc123def-hunter2secret today")


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("X-Api-Key", "zebra-77-quokka", ["zebra-77-quokka"]),
        ("Authorization", "Bearer zebra-77", ["zebra-77"]),
        ("Cookie", "a=zebra-77; b=quokka-88", ["zebra-77", "quokka-88"]),
        ("Set-Cookie", "a=zebra-77; Domain=internal.example.com", ["zebra-77"]),
    ],
)
def test_values_of_headers(redactor, name, value, secrets):
    redactor.add_header(name, value)

    for number, secret in enumerate(secrets, 1):
        assert redactor.text(f"you are {secret}") == f"you are REDACTED-{number}"
    assert redactor.text("internal.example.com") == "internal.example.com"


def test_values_of_other_headers_stay(redactor):
    redactor.add_header("User-Agent", "inspector-17")

    assert redactor.text("inspector-17") == "inspector-17"


@pytest.mark.needs("re2")
def test_own_patterns():
    redactor = Redactor({}, patterns=["EMP-[0-9]+"])

    assert redactor.message(request(text="EMP-17 and EMP-18 and EMP-17")) == request(
        text="REDACTED-1 and REDACTED-2 and REDACTED-1"
    )
    assert redactor.counts == {"pattern": 2}


def test_command_lines(redactor):
    words = [
        "npx",
        "server",
        "--token",
        "swordfish",
        "--api-key=swordfish2",
        "-v",
        "TOKEN=swordfish3",
        "postgres://a:swordfish4@db/x",
        ".",
    ]

    assert redactor.command(words) == [
        *("npx", "server", "--token", "REDACTED-1", "--api-key=REDACTED-2", "-v", "TOKEN=REDACTED-3"),
        *("postgres://a:REDACTED-4@db/x", "."),
    ]


def test_urls(redactor):
    url = f"https://me:swordfish@host:8443/s/{WORD}/mcp?mode=a&token=swordfish2&k={WORD}"

    assert redactor.url(url) == "https://REDACTED-1@host:8443/s/REDACTED-2/mcp?mode=a&token=REDACTED-3&k=REDACTED-2"


def test_a_json_string_that_is_cut_off_may_contain_other_bytes(redactor):
    assert redactor.line(b'"swordfish is the word\x80') == b'"REDACTED-1'


def test_a_json_string_that_is_cut_off_is_replaced(redactor):
    assert redactor.line(b'{"id": 1, "text": "ghp_abc') == b'{"id": 1, "text": "REDACTED-1'
    assert redactor.line(b'{"password": "sword') == b'{"password": "REDACTED-2"'


@pytest.mark.parametrize(
    "text",
    ["The token is read from a file", "password: see the manual", "a=b; c=d", "4111 1111 1111 1112", "2025-11-25", "basic authentication",
     "bearer of news", "1111111111111111", "https://host:8080/path@x", "key: value", '{"a": "b"}', "x" * 100_000],
)  # fmt: skip
def test_ordinary_text_stays(redactor, text):
    assert redactor.text(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "=",
        '"',
        "\\",
        '"a":',
        "-----BEGIN PRIVATE KEY-----",
        "eyJa.",
        "<a>",
        "ab:1",
        "token:",
        "x://",
        "4",
        "bearer ",
        " -a",
        "a-",
        ":",
        "\n",
    ],
)
def test_time_is_linear(piece):
    import time

    def took(size):
        begun = time.process_time()
        Redactor({}).text(piece * (size // len(piece)))
        return time.process_time() - begun

    took(1000)
    assert min(took(40_000) for _ in range(2)) < 10 * max(min(took(10_000) for _ in range(3)), 0.005)
