"""Objects under revisions that know less, or more."""

import pytest

from tmkb.protocol import outbound

LINK = {
    "type": "resource_link",
    "uri": "test://a",
    "name": "a",
    "icons": [],
    "annotations": {"audience": ["user"], "x": 1},
}


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        ("2024-11-05", {"type": "text", "text": "a: test://a", "annotations": {"audience": ["user"]}}),
        ("2025-03-26", {"type": "text", "text": "a: test://a", "annotations": {"audience": ["user"]}}),
        (
            "2025-06-18",
            {"type": "resource_link", "uri": "test://a", "name": "a", "annotations": {"audience": ["user"]}},
        ),
        ("2025-11-25", {**LINK, "annotations": {"audience": ["user"]}}),
    ],
)
def test_content_is_replaced_where_its_type_is_unknown(spec, revision, expected):
    fitted = outbound.fit(spec["revisions"][revision], "call_result", {"content": [LINK], "isError": False})

    assert fitted == {"content": [expected], "isError": False}


def test_content_of_an_unknown_type(spec):
    (block,) = outbound.fit(spec["revisions"]["2025-11-25"], "call_result", {"content": [{"type": "smell"}]})["content"]

    assert block["type"] == "text"
    assert "smell" in block["text"]


FORM = {
    "type": "object",
    "properties": {
        "age": {"type": "integer", "default": 30},
        "ok": {"type": "boolean", "default": True},
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}], "default": "r"},
        "many": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
    },
    "required": ["age", "many"],
}


def test_a_form_contains_only_fields_of_the_revision(spec):
    older = outbound.fit(
        spec["revisions"]["2025-06-18"], "elicit", {"message": "?", "requestedSchema": FORM, "mode": "form"}
    )
    newer = outbound.fit(
        spec["revisions"]["2025-11-25"], "elicit", {"message": "?", "requestedSchema": FORM, "mode": "form"}
    )

    assert newer == {"message": "?", "requestedSchema": FORM, "mode": "form"}
    assert older == {
        "message": "?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "age": {"type": "integer"},
                "ok": {"type": "boolean", "default": True},
                "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "g"]},
            },
            "required": ["age"],
        },
    }


def test_one_message_of_several_blocks_becomes_several(spec):
    blocks = [{"type": "text", "text": "a"}, {"type": "audio", "data": "", "mimeType": "audio/wav"}]
    asked = {"messages": [{"role": "user", "content": blocks}], "maxTokens": 1}

    older = outbound.fit(spec["revisions"]["2024-11-05"], "create_message", asked)
    newer = outbound.fit(spec["revisions"]["2025-11-25"], "create_message", asked)

    assert newer == asked
    assert [message["content"]["type"] for message in older["messages"]] == ["text", "text"]
    assert [message["role"] for message in older["messages"]] == ["user", "user"]
