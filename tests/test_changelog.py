"""CHANGELOG.md has the form of Keep a Changelog, and says each thing once."""

import collections
import difflib
import itertools
import os
import re

from tests.support.repository import ROOT, source

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
RELEASE = re.compile(r"\[(?:Unreleased|\d+\.\d+\.\d+)\](?: - \d{4}-\d\d-\d\d)?")
ALIKE = 0.75  # of two entries whose words are nearly the same; the most similar different ones have 0.4
LONGEST = 420  # characters of an entry


def sections(text):
    """Yield (release, kind, entries) of each section."""
    for release in re.split(r"^## ", text, flags=re.M)[1:]:
        for section in re.split(r"^### ", release, flags=re.M)[1:]:
            entries = re.findall(r"^- (.*(?:\n  .*)*)", section, re.M)
            yield release.partition("\n")[0], section.partition("\n")[0], [" ".join(each.split()) for each in entries]


def subject(entry):
    """The code with which an entry begins; "" if it begins with words."""
    code = re.match(r"(?:`[^`]+`(?:, | and )?)+", entry)
    return code[0].rstrip(" ,") if code else ""


def repeated(text):
    """Return the entries that say what another one says: of one section with one subject, or with nearly the same words."""
    found = []
    for release, kind, entries in sections(text):
        counted = collections.Counter(filter(None, map(subject, entries)))
        found += [f"{release} {kind}: {name}" for name, count in counted.items() if count > 1]
    every = [(release, entry) for release, _, entries in sections(text) for entry in entries]
    for (one, first), (other, second) in itertools.combinations(every, 2):
        words = difflib.SequenceMatcher(None, first.split(), second.split())
        if one == other and words.quick_ratio() > ALIKE and words.ratio() > ALIKE:
            found.append(f"{one}: {first} / {second}")
    return found


CHANGELOG = source(os.path.join(ROOT, "CHANGELOG.md"))


def test_the_form_is_that_of_keep_a_changelog():
    releases = re.findall(r"^## (.*)$", CHANGELOG, re.M)
    numbers = [
        tuple(map(int, found[0].split("."))) for name in releases if (found := re.findall(r"\d+\.\d+\.\d+", name))
    ]

    assert CHANGELOG.startswith("# Changelog\n") and releases[0] == "[Unreleased]"
    assert [name for name in releases if not RELEASE.fullmatch(name)] == []
    assert len(set(releases)) == len(releases) and numbers == sorted(numbers, reverse=True)
    for release, kinds in itertools.groupby(sections(CHANGELOG), lambda each: each[0]):
        names = [kind for _, kind, _ in kinds]
        assert names == sorted(names, key=KINDS.index) and len(set(names)) == len(names), release


def test_nothing_is_said_twice():
    assert repeated(CHANGELOG) == []


def test_entries_are_short():
    assert [entry for *_, entries in sections(CHANGELOG) for entry in entries if len(entry) > LONGEST] == []


def test_repetitions_are_found():
    """What the first version of the file had: one command three times, and the same sentence in other words."""
    text = (
        "## [Unreleased]\n\n### Added\n\n- `tmkb prove` runs the proofs.\n- `tmkb get` shows a pattern,\n  in full.\n"
        "- `tmkb prove` writes\n  `_proven.yaml`.\n\n### Fixed\n\n- `tmkb get` shows a pattern, in full now.\n"
    )

    assert repeated(text) == [
        "[Unreleased] Added: `tmkb prove`",
        "[Unreleased]: `tmkb get` shows a pattern, in full. / `tmkb get` shows a pattern, in full now.",
    ]
