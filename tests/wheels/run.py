"""On which platforms can the dependencies be installed as wheels? ``python -m tests.wheels.run [--write]``

Asks the package index that pip uses for the files of each dependency with compiled code, also of indirect ones. The newest
release that a version of Python accepts counts. ``--write`` puts the table into docs/platforms.md. A difference from the
table there only makes a note, since releases come and go; a gap in the wheels of the core is a failure.
"""

import functools
import json
import os
import re
import sys
import urllib.request
from importlib import metadata

from packaging import tags
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

from tests.support.repository import ROOT

DOCUMENT = os.path.join(ROOT, "docs", "platforms.md")
PART = re.compile(r"(<!-- generated: wheels -->\n\n?)(.*?)(<!-- end -->)", re.S)
EXTRAS = ("", "http", "replay", "watch", "sysmcp", "regex", "site", "train", "proofs")
PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))
GLIBC = [f"manylinux_2_{minor}" for minor in range(39, 4, -1)] + ["manylinux2014", "manylinux2010", "manylinux1"]
MUSL = ["musllinux_1_2", "musllinux_1_1"]
PLATFORMS = {
    "Linux x86-64": [f"{name}_x86_64" for name in GLIBC],
    "Linux ARM64": [f"{name}_aarch64" for name in GLIBC],
    "Alpine x86-64": [f"{name}_x86_64" for name in MUSL],
    "Alpine ARM64": [f"{name}_aarch64" for name in MUSL],
    "macOS ARM64": [*tags.mac_platforms((15, 0), "arm64")],
    "macOS Intel": [*tags.mac_platforms((15, 0), "x86_64")],
    "Windows x86-64": ["win_amd64"],
    "Windows ARM64": ["win_arm64"],
}


def dependencies(extra):
    """The direct and indirect dependencies of the extra, as installed here: name → the requirements of it."""
    found, pending = {}, [("tmkb", extra)]
    visited = set()
    while pending:
        name, chosen = pending.pop()
        if (name, chosen) in visited:
            continue
        visited.add((name, chosen))
        for text in metadata.requires(name) or []:
            requirement = Requirement(text)
            environments = [
                {**default_environment(), "extra": chosen, "sys_platform": each} for each in ("linux", "win32")
            ]
            if requirement.marker and not any(map(requirement.marker.evaluate, environments)):
                continue
            child = canonicalize_name(requirement.name)
            found.setdefault(child, SpecifierSet())
            found[child] &= requirement.specifier
            if installed(child):
                pending += [(child, each) for each in ("", *requirement.extras)]
    return found


def installed(name):
    """The distribution with that name; None if it is not installed."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def is_compiled(name):
    """Whether the installed wheel fits this platform only; a package that is not installed may be."""
    distribution = installed(name)
    return distribution is None or "Tag: py3-none-any" not in (distribution.read_text("WHEEL") or "").replace(
        "py2.py3", "py3"
    )


@functools.cache
def files(name):
    """The files of a package in the index."""
    from pip._internal.models.index import PyPI  # the default of pip, which has no public name

    index = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")
    request = urllib.request.Request(f"{index}/{name}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request, timeout=180) as answer:
        return json.load(answer)["files"]


def newest(name, specifier, python):
    """The newest release that this Python accepts, as a version, and the tags of its wheels."""
    releases = {}
    for file in files(name):
        accepted = SpecifierSet(file.get("requires-python") or "")
        if file.get("yanked") or not accepted.contains("{}.{}.9".format(*python)):
            continue
        try:
            if file["filename"].endswith(".whl"):
                _, version, _, built = parse_wheel_filename(file["filename"])
            else:
                (_, version), built = parse_sdist_filename(file["filename"]), frozenset()
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue
        if specifier.contains(version, prereleases=False):
            releases.setdefault(version, set()).update(built)
    return max(releases.items(), default=(None, set()))


def lacking(name, specifier):
    """Yield platform and Python of which the newest release has no wheel."""
    for python in PYTHONS:
        _, built = newest(name, specifier, python)
        for platform, names in PLATFORMS.items():
            wanted = {*tags.cpython_tags(python, platforms=names), *tags.compatible_tags(python, platforms=names)}
            if not built & wanted:
                yield platform, ".".join(map(str, python))


def rows():
    """The table: for each extra and each platform, the packages without a wheel."""
    core = dependencies("")
    for extra in EXTRAS:
        packages = {name: spec for name, spec in dependencies(extra).items() if not extra or name not in core}
        gaps = {platform: [] for platform in PLATFORMS}
        for name, specifier in sorted(packages.items()):
            if is_compiled(name):
                missing = [*lacking(name, specifier)]
                for platform in PLATFORMS:
                    pythons = [python for of, python in missing if of == platform]
                    if name == "pywin32" and not platform.startswith("Windows"):
                        continue
                    if pythons:
                        gaps[platform].append(
                            name if len(pythons) == len(PYTHONS) else f"{name} ({', '.join(pythons)})"
                        )
        yield extra or "core", gaps


def table(found):
    """The rows as Markdown."""
    lines = [f"| Without a wheel on | {' | '.join(extra for extra, _ in found)} |", "|---|" + "---|" * len(found)]
    for platform in PLATFORMS:
        lines.append(f"| {platform} | {' | '.join(', '.join(gaps[platform]) or '-' for _, gaps in found)} |")
    return "\n".join(lines) + "\n"


def main():
    """Print the table; return 1 if the core lacks a wheel."""
    found = [*rows()]
    made = table(found)
    print(made)
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    new = PART.sub(lambda part: f"{part[1]}{made}\n{part[3]}", text)
    if "--write" in sys.argv:
        with open(DOCUMENT, "w", encoding="utf-8") as file:
            file.write(new)
    elif new != text:
        print("docs/platforms.md has another table: python -m tests.wheels.run --write")
    core = {platform: gaps for platform, gaps in dict(found)["core"].items() if gaps and platform != "Windows ARM64"}
    for platform, gaps in core.items():
        print(f"The core has no wheel on {platform}: {', '.join(gaps)}")
    return 1 if core else 0


if __name__ == "__main__":
    sys.exit(main())
