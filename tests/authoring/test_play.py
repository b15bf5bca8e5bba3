"""Cases are played on a small target that answers what its test says."""

from contextlib import contextmanager

import pytest

from tmkb.authoring import play
from tmkb.knowledge.attacks import Attacks


class Target:
    """Answers each path with a prepared response. A rival runs in every step with `during`, unless it is never reached."""

    def __init__(self, responses, reached=True):
        self.responses, self.reached, self.sent = responses, reached, []

    def send(self, _actor, _method, path, _parts):
        self.sent.append(path)
        return self.responses[path]

    @contextmanager
    def during(self, _after, rival):
        if self.reached:
            rival()
        yield None


def verdict(target, **attack):
    attacks = Attacks({"attacks": {"one": {"story": "", "refused": 404, **attack}}})
    return play.play(attacks.case("one"), target, {})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"cache-control": "private"}, "refused"),
        ({"Cache-Control": "public"}, "neither"),
        ({"Vary": None}, "refused"),
        ({"Cache-Control": None}, "neither"),
    ],
)
def test_a_condition_on_headers(headers, status):
    target = Target({"/": play.Response(404, headers={"Cache-Control": "private"})})
    assert verdict(target, attempt={"send": "GET /"}, refused={"status": 404, "headers": headers}).status == status


def test_a_step_with_several_expected_statuses():
    target = Target({"/": play.Response(404), "/first": play.Response(409)})
    for statuses, status in (([200, 409], "refused"), ([200, 404], "failed")):
        step = {"send": "GET /first", "status": statuses}
        assert verdict(target, steps=[step], attempt={"send": "GET /"}).status == status


def test_a_row_with_its_own_secrets_and_condition():
    row = {"actor": "bob", "relation": "", "refused": {"show": 200}}
    value = {"verbs": {"show": {"send": "GET /"}}, "attacks": {}, "secrets": ["salary"]}
    target = Target({"/": play.Response(200, "the plan")})
    for extra, status in (({}, "refused"), ({"secrets": ["plan"]}, "gained"), ({"gained": 200}, "both")):
        attacks = Attacks({**value, "matrix": [{**row, **extra}]})
        assert play.play(attacks.case("bob_show"), target, {}).status == status


@pytest.mark.parametrize(
    ("response", "reached", "detail"),
    [
        (play.Response(500, "broken"), True, "unexpected 500 broken"),
        (play.Response(200, "[]"), True, "no /id in 200 []"),
        (None, True, "KeyError: '/rival'"),
        (play.Response(200), False, "the rival did not run"),
    ],
)
def test_a_rival_that_fails(response, reached, detail):
    """No race took place, so nothing was shown."""
    target = Target({"/": play.Response(404)} | ({"/rival": response} if response else {}), reached)
    rival = {"send": "GET /rival", "save": {"id": "/id"}}
    found = verdict(target, attempt={"send": "GET /", "during": {"after": "FROM", "steps": [rival]}})
    assert found.status == "failed" and detail in found.detail


def test_what_a_rival_saves_can_be_used():
    target = Target({"/": play.Response(404), "/rival": play.Response(200, '{"id": 7}'), "/7": play.Response(404)})
    rival = {"send": "GET /rival", "save": {"id": "/id"}}
    step = {"send": "GET /", "status": 404, "during": {"before": "COMMIT", "steps": [rival]}}
    assert verdict(target, steps=[step], attempt={"send": "GET /{id}"}).status == "refused"
    assert target.sent == ["/rival", "/", "/7"]
