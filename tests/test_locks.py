"""The lock files for CI have everything that pyproject.toml names, each with hashes, and nothing of one machine."""

import os
import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.repository import ROOT, source

PROJECT = tomllib.loads(source(os.path.join(ROOT, "pyproject.toml")))
EXTRAS, GROUPS = PROJECT["project"]["optional-dependencies"], PROJECT["dependency-groups"]
CORE = PROJECT["project"]["dependencies"]
LOCKS = {
    "dev": [*CORE, *EXTRAS["dev"]],
    "release": [*CORE, *GROUPS["release"]],
    "node": GROUPS["node"],
    "audit": GROUPS["audit"],
}


def lock(name):
    return source(os.path.join(ROOT, ".ci", "requirements", f"{name}.txt"))


def direct(requirements):
    """Yield the requirements, with those of our own extras in place of `tmkb[...]`."""
    for requirement in map(Requirement, requirements):
        if requirement.name == "tmkb":
            for extra in requirement.extras:
                yield from direct(EXTRAS[extra])
        else:
            yield requirement


def pinned(text):
    """Return the releases by package; a package has several if its release depends on Python or the system."""
    releases = {}
    for entry in re.findall(r"^[a-z0-9].*", text, re.M):
        requirement = Requirement(entry.rstrip("\\"))
        (pin,) = requirement.specifier
        assert pin.operator == "==", entry
        releases.setdefault(canonicalize_name(requirement.name), []).append(pin.version)
    return releases


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_what_the_project_requires(name):
    releases = pinned(lock(name))

    for requirement in direct(LOCKS[name]):
        fitting = [*requirement.specifier.filter(releases.get(canonicalize_name(requirement.name), ()))]
        assert fitting, f"{requirement}: run .ci/lock"


@pytest.mark.parametrize("name", LOCKS)
def test_every_entry_has_hashes_and_no_address(name):
    entries = re.split(r"^(?=[a-z0-9])", lock(name), flags=re.M)[1:]

    assert all(re.search(r"^    --hash=sha256:[0-9a-f]{64}", entry, re.M) for entry in entries)
    assert not re.search(r"://|^-|@ ", lock(name), re.M)


def test_decisions_about_advisories_have_a_date_and_a_reason():
    lines = [
        line for line in source(os.path.join(ROOT, ".ci", "advisories.txt")).splitlines() if not line.startswith("#")
    ]

    assert all(re.fullmatch(r"[A-Z]+-\S+  \d{4}-\d\d-\d\d  \S.{20,}", line) for line in lines)
