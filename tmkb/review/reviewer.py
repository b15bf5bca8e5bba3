"""Ask a command that runs a language model, and read its answer."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tmkb.knowledge.ids import is_name
from tmkb.review.changes import Section
from tmkb.schema import template

if TYPE_CHECKING:
    from tmkb.review.prompt import Prompt

VARIABLE = "TMKB_REVIEWER"
TIMEOUT = 300.0  # seconds for one prompt
_SHOWN = 200  # code points of an answer, or of an error, in a message
_LONGEST = 1_000_000  # code points of an answer
_LONGEST_TEXT = 1000  # code points of a reason


class ReviewerError(Exception):
    """The command failed, or its answer has no comments in it, not even an empty list."""


class Finding(NamedTuple):
    """A comment of the model on a section. ``line``: of the section, in the new file."""

    section: Section
    line: int
    pattern: str
    who: str
    reason: str


def words(command: str) -> list[str]:
    """Return the words of ``command`` as a shell splits them. Raises ReviewerError."""
    try:
        if split := shlex.split(command):
            return split
    except ValueError as error:
        raise ReviewerError(f"`{command}` cannot be split into words: {error}.") from error
    raise ReviewerError("The command is empty.")


def ask(command: Sequence[str], prompt: str, timeout: float) -> str:
    """Return what ``command`` writes to stdout when it reads ``prompt`` from stdin. No shell is used.

    A command that returns the prompt with its answer is understood: the prompt is taken out.

    Args:
        command: its words.
        prompt: the text.
        timeout: seconds.

    Raises:
        ReviewerError: it is not installed, fails or takes too long.
    """
    name = command[0]
    program = _program(name)
    if program is None:
        raise ReviewerError(f"`{name}` is not on PATH.")
    pipe = subprocess.PIPE
    try:  # in a new session, without a terminal, nothing can ask a person
        process = subprocess.Popen(
            [program, *command[1:]], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise ReviewerError(f"`{name}` cannot be started: {getattr(error, 'strerror', None) or error}.") from error
    with process:
        try:
            output, errors = process.communicate(prompt.encode("utf-8", "backslashreplace"), timeout)
        except subprocess.TimeoutExpired as error:
            _kill(process)
            raise ReviewerError(f"`{name}` took longer than {timeout:g} seconds; see --reviewer-timeout.") from error
        except BaseException:
            _kill(process)
            raise
    if process.returncode:
        said = _start(errors.decode(errors="replace")) or _start(output.decode(errors="replace")) or "it wrote nothing"
        raise ReviewerError(f"`{name}` returned the exit status {process.returncode}: {said}.")
    return output.decode(errors="replace").replace("\r\n", "\n").replace(prompt.strip(), "")


def read(answer: str, prompt: Prompt, ids: Collection[str]) -> tuple[list[Finding], list[str]]:
    """Return the comments in ``answer``, and what is wrong with those that cannot be used.

    The last JSON array of objects counts, so that prose and fences can be around it. A line outside of its section
    becomes the nearest one in it. Of several comments on a section the first counts.

    Args:
        answer: what the model wrote.
        prompt: what it was asked.
        ids: of all patterns.

    Raises:
        ReviewerError: there is no array.
    """
    if len(answer) > _LONGEST:
        raise ReviewerError(f"The answer is longer than {_LONGEST} characters.")
    arrays = [*_arrays(answer)]
    if not arrays:
        raise ReviewerError(f"The answer has no JSON array of comments: {_start(answer) or 'it is empty'}.")
    findings: dict[int, Finding] = {}
    faults: list[str] = []
    for number, each in enumerate(arrays[-1], 1):
        try:
            at, finding = _finding(each, prompt.sections, ids)
            findings.setdefault(at, finding)
        except ValueError as error:
            faults.append(f"Comment {number} of the answer cannot be used: {error}.")
    return [*findings.values()], faults


def _arrays(text: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the JSON arrays in ``text`` that have only objects, without those inside of others."""
    decoder = json.JSONDecoder()
    at = text.find("[")
    while at >= 0:
        end = at + 1
        with contextlib.suppress(ValueError, RecursionError):
            value, after = decoder.raw_decode(text, at)
            if all(isinstance(each, dict) for each in value):
                yield value
                end = after
        at = text.find("[", end)


def _finding(value: Mapping[str, Any], sections: Mapping[int, Section], ids: Collection[str]) -> tuple[int, Finding]:
    """Return the number of a section, and the comment on it. Raises ValueError with what is wrong."""
    at = _number(value.get("section"))
    if at is None or at not in sections:
        raise ValueError(f"there is no section {_shown(value.get('section'))}")
    section = sections[at]
    name = str(value.get("pattern", "")).strip().upper()
    pattern = next((id_ for id_ in ids if is_name(name, id_)), None)
    if pattern is None:
        raise ValueError(f"there is no pattern {_shown(value.get('pattern'))} ({section.path}, section {at})")
    who, reason = _sentence(value.get("who")), _sentence(value.get("reason"))
    if not who or not reason:
        missing = "reason" if who else "who"
        raise ValueError(f"`{missing}` is missing ({section.path}, section {at}, {pattern})")
    return at, Finding(section, _nearest(section, _number(value.get("line"))), pattern, who, reason)


def _number(value: object) -> int | None:
    """Return a number that stands alone or in a text, such as `section 3`; None without one."""
    digits = "".join(filter(str.isdecimal, str(value)))
    is_one = isinstance(value, int | str) and not isinstance(value, bool) and 0 < len(digits) < 10
    return int(digits) if is_one else None


def _nearest(section: Section, line: int | None) -> int:
    """Return the line of ``section`` that is nearest to ``line``, if possible where a comment can stand."""
    numbers = [each.number for each in section.lines if each.number is not None]
    if line in numbers and line is not None:
        return line
    places = [each.number for each in section.places if each.number is not None] or numbers
    return places[0] if line is None else min(places, key=lambda number: (abs(number - line), number))


def _sentence(value: object) -> str:
    """Return a text in one line that ends like a sentence; an empty one for what is no text."""
    text = template.cut(" ".join(value.split()), _LONGEST_TEXT) if isinstance(value, str) else ""
    return f"{text}." if text and text[-1] not in ".!?…" else text


def _shown(value: object) -> str:
    return template.cut(repr(value))


def _start(text: str) -> str:
    """Return the first characters of ``text`` in one line, without a period at the end."""
    return template.cut(" ".join(text.split()), _SHOWN).rstrip(".")


def _program(name: str) -> str | None:
    """Return the path of a program; None if it is not installed. The current folder is never searched for a name."""
    if os.path.dirname(name):
        return name
    folders = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
    return next(filter(None, (shutil.which(os.path.join(folder, name)) for folder in folders)), None)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and the programs that it has started."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
