"""The hook after an edit: the sections of events as Claude Code 2.1 writes them."""

import pytest

from tmkb.review import hook

LINES = [f"line {number}" for number in range(1, 41)]


def event(response, cwd="/work/shop"):
    """An event with this `tool_response`; the keys that the hook does not read are left out."""
    return {"cwd": cwd, "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_response": response}


def edited(*hunks):
    """The response of `Edit` with hunks (old start, new start, lines)."""
    patch = [
        {
            "oldStart": old,
            "oldLines": sum(line[0] in " -" for line in lines),
            "newStart": new,
            "newLines": sum(line[0] in " +" for line in lines),
            "lines": lines,
        }
        for old, new, lines in hunks
    ]
    return {"filePath": "/work/shop/app/orders.py", "originalFile": "\n".join(LINES) + "\n", "structuredPatch": patch}


def shown(section):
    return [(line.sign, line.text, line.number) for line in section.lines]


def test_a_created_file_is_new_in_every_line():
    response = {"type": "create", "filePath": "/work/shop/a.py", "content": "a\nb\n", "structuredPatch": []}
    (section,) = hook.sections(event({**response, "originalFile": None}))

    assert section.path == "a.py"
    assert shown(section) == [("+", "a", 1), ("+", "b", 2)]


def test_a_hunk_has_the_lines_around_it():
    hunk = (19, 19, [" line 19", "-line 20", "+new", " line 21", "\\ No newline at end of file"])
    (section,) = hook.sections(event(edited(hunk)))

    assert section.path == "app/orders.py"
    assert shown(section) == [
        *((" ", f"line {number}", number) for number in range(11, 20)),
        ("-", "line 20", None),
        ("+", "new", 20),
        *((" ", f"line {number}", number) for number in range(21, 30)),
    ]


def test_the_lines_around_a_hunk_are_not_those_of_another_hunk():
    first, second = (2, 2, ["-line 2", "+a", "+b"]), (6, 7, ["-line 6", "+c"])
    before, section = hook.sections(event(edited(first, second)))

    assert shown(before)[-3:] == [(" ", "line 3", 4), (" ", "line 4", 5), (" ", "line 5", 6)]
    assert shown(section)[:4] == [(" ", "line 3", 4), (" ", "line 4", 5), (" ", "line 5", 6), ("-", "line 6", None)]
    assert ("+", "c", 7) in shown(section)


def test_a_hunk_at_the_beginning_of_an_empty_file():
    response = {**edited((0, 1, ["+a", "+b\r"])), "originalFile": None}

    assert shown(next(hook.sections(event(response)))) == [("+", "a", 1), ("+", "b", 2)]


def test_a_file_outside_of_the_project_keeps_its_path():
    response = {"type": "create", "filePath": "/tmp/a.py", "content": "a"}

    assert [section.path for section in hook.sections(event(response))] == ["/tmp/a.py"]


@pytest.mark.parametrize("other", [{}, {"tool_response": "done", "cwd": "/"}, event({"filePath": "/a"})])
def test_an_event_of_another_shape_is_an_error(other):
    with pytest.raises((KeyError, TypeError)):
        list(hook.sections(other))


def test_without_comments_there_is_no_answer():
    assert hook.answer([], {}) is None
