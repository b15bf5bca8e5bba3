"""Play the cases of an attacks.yaml against an application, and judge what they came to.

The application is reached through a `Target`. `tmkb prove` plays on `tmkb.authoring.proofs.stage`. The tests that
`tmkb get ID --test` writes play on the user's own application.
"""

from __future__ import annotations

import json
import unittest
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from tmkb.knowledge.attacks import Attacks, Case, Step
from tmkb.schema import template

Rival = Callable[[], dict[str, Any]]  # performs steps at the same time as another step

SERVED, GAINED, REFUSED, FAILED = "served", "gained", "refused", "failed"


@dataclass(frozen=True, slots=True)
class Response:
    """What a step came to: an HTTP response, or the results of jobs."""

    status: int = 200
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    raised: Sequence[str] = ()  # classes of the exceptions that ended jobs

    def json(self) -> Any:
        """Return the body as JSON; None if it is not JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None


class Target(Protocol):
    """An application under attack. Methods that an application cannot offer raise NotImplementedError."""

    def send(self, actor: str, method: str, path: str, parts: Mapping[str, Any]) -> Response:
        """Send a request as ``actor``. ``parts``: json, form, files, data and headers, as far as the step has them."""

    def event(self, name: str, values: Mapping[str, Any]) -> Any:
        """Change the world, as another part of the application would: ``leave`` takes a user out of the tenant."""

    def state(self, name: str) -> Any:
        """Return a JSON value that describes a part of the data."""

    def work(self) -> Response:
        """Run all queued jobs."""

    def wait(self, seconds: float) -> None:
        """Advance the clock."""

    def during(self, after: str | None, rival: Rival) -> AbstractContextManager[dict[str, Any] | None]:
        """Run ``rival`` after the first SQL statement that contains ``after``, or before the first COMMIT if None.

        Yield what ``rival`` returns if it runs in another process; the value is complete when the context ends.
        """


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a case came to, and the response that shows it."""

    status: str  # served, gained, refused, both, neither; failed: a step before the attempt had an unexpected response
    detail: str


class StepError(Exception):
    """A step before the attempt did not have the expected response."""


def prepare(setup: Sequence[Step], target: Target) -> dict[str, Any]:
    """Perform the steps before every case and return the values that they save.

    Raises:
        StepError: a step did not have the expected response.
    """
    run = _Run(target, {})
    run.succeed_all(setup)
    return run.values


def play(case: Case, target: Target, values: Mapping[str, Any]) -> Verdict:
    """Play ``case`` on a ``target`` that is prepared, with the ``values`` from its preparation."""
    run = _Run(target, dict(values))
    try:
        run.succeed_all(case.steps)
        run.values |= run.filled(case.values)
        before = run.observe(case.observe)
        response = run.perform(case.attempt)
        after = run.observe(case.observe)
    except StepError as error:
        return Verdict(FAILED, str(error))
    changed = before != after
    evidence = f"{response.status} {_shown(response)} {' '.join(response.raised)}".strip()
    evidence += f"; {'changed' if changed else 'unchanged'}" if case.observe else ""
    if case.allowed:
        changes = case.attempt.get("changes")
        served = run.holds(case.refused, response, changed) and (changes is None or changes == changed)
        return Verdict(SERVED if served else FAILED, evidence)
    leaked = run.leaked(case.secrets, response)
    gained = leaked or changed if case.gained is None else run.holds(case.gained, response, changed)
    refused = run.holds(case.refused, response, changed) and not leaked
    if not (isinstance(case.refused, dict) and "changed" in case.refused):
        refused = refused and not changed
    return Verdict(_STATUS[gained, refused], evidence)


_STATUS = {(True, False): GAINED, (False, True): REFUSED, (True, True): "both", (False, False): "neither"}


def check(attacks: Attacks, case: Case, target: Target) -> None:
    """Play ``case`` from its beginning, for a test of one's own application.

    Raises:
        AssertionError: an attack was not refused, or a legitimate use not served.
        unittest.SkipTest: the target does not offer what the case needs.
    """
    try:
        verdict = play(case, target, prepare(attacks.setup, target))
    except NotImplementedError as error:
        raise unittest.SkipTest(f"App does not offer {error}") from error
    expected = SERVED if case.allowed else REFUSED
    assert verdict.status == expected, f"expected {expected}, was {verdict.status} ({verdict.detail})"


class _Run:
    """One case while it is played: the target, and the values that steps have saved."""

    def __init__(self, target: Target, values: dict[str, Any]) -> None:
        self.target = target
        self.values = values

    def succeed_all(self, steps: Sequence[Step]) -> None:
        """Perform steps that must have their expected responses."""
        for step in steps:
            self.succeed(step)

    def succeed(self, step: Step) -> None:
        """Perform a step that must have its expected response."""
        response = self._response(step)
        expected = self.filled(step.get("body"))
        ok = self.holds(step["status"], response, False) if "status" in step else response.status < 400
        if not ok or (expected is not None and not _contains(response.json(), expected)):
            evidence = f"{response.status} {_shown(response)}".rstrip()
            raise StepError(f"{_title(step)} before the attempt: unexpected {evidence}")
        self._save(step, response)

    def perform(self, step: Step) -> Response:
        """Perform ``step`` and save what it names."""
        response = self._response(step)
        self._save(step, response)
        return response

    def _response(self, step: Step) -> Response:
        if "during" in step:
            return self._interrupted(step, **step["during"])
        if "send" in step:
            method, _, path = step["send"].partition(" ")
            parts = {key: self.filled(step[key]) for key in _PARTS if key in step}
            return self.target.send(step.get("by", "anonymous"), method, self.filled(path), parts)
        if "event" in step:
            result = self.target.event(step["event"], self.filled(step.get("values", {})))
            return Response(text=json.dumps(result))
        if "state" in step:
            return Response(text=json.dumps(self.target.state(step["state"])))
        if "work" in step:
            return self.target.work()
        self.target.wait(step["wait"])
        return Response()

    def _interrupted(self, step: Step, steps: Sequence[Step], after: str | None = None, before: str = "") -> Response:
        """Perform ``step`` while a rival performs ``steps``, which must succeed. ``before`` can only be COMMIT."""
        outcome: dict[str, Any] = {}

        def rival() -> dict[str, Any]:  # in a thread or a process of its own
            try:
                self.succeed_all(steps)
            except StepError as error:
                outcome["failure"] = str(error)
            except Exception as error:
                outcome["failure"] = f"{type(error).__name__}: {error}"
            else:
                outcome["values"] = self.values
            return outcome

        with self.target.during(after, rival) as elsewhere:
            response = self._response({key: value for key, value in step.items() if key != "during"})
        outcome |= elsewhere or {}
        if "values" not in outcome:
            raise StepError(outcome.get("failure", "the rival did not run to its end"))
        self.values |= outcome["values"]
        return response

    def _save(self, step: Step, response: Response) -> None:
        for name, pointer in step.get("save", {}).items():
            self.values[name] = _pointed(response, pointer, step)

    def observe(self, steps: Sequence[Step]) -> list[tuple[int, str]]:
        """Return what ``steps`` see now."""
        return [(response.status, response.text) for response in map(self.perform, steps)]

    def holds(self, condition: Any, response: Response, changed: bool) -> bool:
        """Return whether ``condition`` is true: a status, several of them, or a map of conditions."""
        if isinstance(condition, int):
            return response.status == condition
        if isinstance(condition, list):
            return response.status in condition
        tests: dict[str, Callable[[Any], bool]] = {
            "status": lambda status: self.holds(status, response, changed),
            "contains": lambda texts: all(str(text) in response.text for text in self.filled(texts)),
            "lacks": lambda texts: not any(str(text) in response.text for text in self.filled(texts)),
            "body": lambda body: _contains(response.json(), self.filled(body)),
            "headers": lambda headers: _contains(_headers(response, headers), self.filled(headers)),
            "changed": lambda expected: changed == expected,
            "raises": lambda name: name in response.raised if name else not response.raised,
        }
        return all(tests[key](value) for key, value in condition.items())

    def leaked(self, secrets: Sequence[Any], response: Response) -> bool:
        """Return whether the response has one of ``secrets``."""
        text = "\n".join([response.text, *response.headers.values()])
        return any(str(self.filled(secret)) in text for secret in secrets)

    def filled(self, value: Any) -> Any:
        """Return ``value`` with the placeholders in its texts replaced. One placeholder alone keeps its type."""
        if isinstance(value, dict):
            return {key: self.filled(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.filled(inner) for inner in value]
        if not isinstance(value, str) or "{" not in value:
            return value
        try:
            parts = list(template.parse(value))
            if [text for text, _ in parts] == ["", ""]:
                return self.values[str(parts[0][1])]
            return "".join(text if name is None else f"{text}{self.values[name]}" for text, name in parts)
        except KeyError as error:
            raise StepError(f"no step has saved {error} of '{value}'") from error
        except ValueError as error:
            raise StepError(f"'{error}' is no placeholder; write {{{{ and }}}} for braces in '{value}'") from error


_PARTS = ("json", "form", "files", "data", "headers")


def _shown(response: Response) -> str:
    """Return the body as evidence: one line, without the pages that a framework makes for errors."""
    return "" if response.text.lstrip().startswith("<!doctype") else " ".join(response.text.split())[:120]


def _title(step: Step) -> str:
    return next(f"{key} {step[key]}" for key in ("send", "event", "state", "work", "wait") if key in step)


def _pointed(response: Response, pointer: str, step: Step) -> Any:
    """Return the part of ``response`` at ``pointer`` (RFC 6901, or ``header:NAME``)."""
    if pointer.startswith("header:"):
        return response.headers[pointer.removeprefix("header:")]
    value = response.json()
    try:
        for part in pointer.split("/")[1:]:
            value = value[int(part)] if isinstance(value, list) else value[part]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise StepError(f"{_title(step)}: no {pointer} in {response.status} {_shown(response)}") from error
    return value


def _headers(response: Response, names: Iterable[str]) -> dict[str, str | None]:
    """Return the headers of ``response`` with these ``names``, in whatever case; None for an absent one."""
    values = {name.lower(): value for name, value in response.headers.items()}
    return {name: values.get(name.lower()) for name in names}


def _contains(value: Any, part: Any) -> bool:
    """Return whether ``value`` has ``part``: maps may have more keys, everything else is equal."""
    if isinstance(part, dict):
        return isinstance(value, dict) and all(key in value and _contains(value[key], part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(value, list) and len(value) == len(part) and all(map(_contains, value, part))
    return bool(value == part)
