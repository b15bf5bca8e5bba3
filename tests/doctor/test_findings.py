"""The file with the findings: each is used, and the document explains each."""

import os
import re

import pytest

from tests.support.repository import ROOT, source
from tmkb.doctor import finding
from tmkb.doctor.finding import Finding, Place, Topic
from tmkb.schema import template

CODE = "".join(
    source(os.path.join(ROOT, "tmkb", "doctor", name))
    for name in sorted(os.listdir(os.path.join(ROOT, "tmkb", "doctor")))
    if name.endswith(".py")
)


def test_every_finding_that_is_reported_exists_and_every_one_that_exists_is_reported():
    by_symptom = {id_ for among in ("stderr", "logs") for _, id_ in finding._symptoms(among)}
    written = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', CODE)) | by_symptom

    assert by_symptom <= {*finding.catalogue()}
    assert {id_ for id_ in finding.catalogue() if id_ not in written and f'found("{id_}"' not in CODE} == set()


def test_a_finding_is_hidden_by_others_that_exist():
    hiding = {each for id_ in finding.catalogue() for each in finding.catalogue()[id_].get("hidden_by", [])}

    assert hiding <= {*finding.catalogue()}


@pytest.mark.parametrize("id_", finding.catalogue())
def test_a_finding_says_what_is_wrong_and_what_to_do(id_):
    entry = finding.catalogue()[id_]

    assert entry["level"] in finding.LEVELS
    assert set(entry) - {"hidden_by"} == {"level", "cause"} | (set() if entry["level"] == "fine" else {"remedy"})
    assert re.search(r"[.}]$", entry["cause"])


def test_a_field_of_a_stranger_is_one_short_line():
    found = Topic("server", Place("a.json", 2)).found("stdout-noise", ["x\x1b[2J"], line="y\n" * 1000)

    assert "\n" not in found.cause and len(found.cause) < 1500
    assert found.details == ("x\\u001b[2J",)
    assert str(found.place) == "a.json:2"


def test_a_sentence_in_a_sentence_has_one_stop():
    found = Topic("server").found("server-ended", status="x", last="Did you mean 'a'?")

    assert found.cause.endswith("were: Did you mean 'a'?")
    assert Topic("server").found("path-relative", option="--patterns", path="..").cause.startswith("--patterns .. is")


def test_repeated_findings_differ_in_more_than_their_details():
    one, other = (Finding("a", "b", "error", "c", "d", details=(text,)) for text in "xy")

    assert finding.without_repetition([one, other]) == [one]


def rows():
    """The lines of the table in the document."""
    for id_, entry in finding.catalogue().items():
        if entry["level"] != "fine":
            cause, remedy = (_words(str(entry[key])) for key in ("cause", "remedy"))
            yield f"| `{id_}` | {entry['level']} | {cause} | {remedy} |"


def _words(text):
    fields = {name: f"<{name}>" for name in template.names(text)} | {"install": "Run `tmkb install CLIENT`."}
    return re.sub(r"<(\w+)>", lambda match: match[1].upper(), template.fill(text, fields)).replace("|", "\\|")


def test_the_document_explains_every_finding():
    text = source(os.path.join(ROOT, "docs", "troubleshooting.md"))

    assert re.findall(r"^\| `[a-z-]+` \| (?:error|warning) \|.*$", text, re.M) == [*rows()]
