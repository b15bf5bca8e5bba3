"""A reviewer without a model: reads a prompt from stdin, and comments on each section that adds `setattr(`.

    python scripted.py FORM [PATTERN]

FORM says how the answer is written.
"""

import json
import re
import sys

FORMS = {
    "array": "{0}",
    "fenced": "I see.\n\n```json\n{0}\n```\n",
    "prose": "Lines [12] and [13] write each key. [] would be wrong, because of [x for x in body].\n{0}\nThat is all.",
    "object": '{{"comments": {0}}}',
    "draft": '[{{"section": 99}}]\nNo, it is this:\n{0}',
    "indented": "{1}",
}


def comments(prompt, pattern):
    """Yield comments on the sections of `prompt`."""
    number = 0
    for line in prompt.split("\n"):
        if head := re.fullmatch(r"@@ (?:section (\d+)|\w+.*) @@", line):
            number = int(head[1] or 0)
        found = re.fullmatch(r" *(\d+) \+ .*setattr\(.*", line)
        if number and found:
            who = "Any user becomes an administrator"
            reason = "The loop passes every key of the body\n to setattr."
            yield {"section": number, "line": int(found[1]), "pattern": pattern, "who": who, "reason": reason}


def main(form="array", pattern="TMKB-AUTH-006"):
    """Answer the prompt on stdin."""
    prompt = sys.stdin.buffer.read().decode()
    found = [*comments(prompt, pattern)]
    echo = prompt if form == "echo" else ""
    sys.stdout.buffer.write(
        (echo + FORMS.get(form, "{0}").format(json.dumps(found), json.dumps(found, indent=2))).encode()
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
