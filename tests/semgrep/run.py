"""Runs semgrep with the exported rules over vulnerable and secure code, and prints what each rule finds.

    python -m tests.semgrep.run [--semgrep PROGRAM] [--page] [ID...]

With ids, it also prints each finding in code that is not known to be vulnerable. Without ids, it compares the result with `docs/semgrep.md`; `--page` writes that page. semgrep is installed below
`.cache`, unless PROGRAM is given, and runs once. It reads

- of each pattern: `vulnerable.py`, `secure.py`, the other mitigations that stop every attack, the idioms in Python,
  JavaScript and TypeScript, and the examples of `semgrep.yaml`,
- the example applications of Flask, FastAPI and Django, from their source distributions.

Exit status 1: a rule finds nothing in vulnerable code, or something in secure code.
"""

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.semgrep import page
from tests.support import packages
from tmkb.cli import get, loader
from tmkb.knowledge import idioms, stacks
from tmkb.publishing import semgrep

SEMGREP = "semgrep==1.182.0"
OPTIONS = ("--json", "--quiet", "--metrics", "off", "--disable-version-check", "--no-git-ignore", "--jobs", "2")
APPLICATIONS = {  # release → folders of its source distribution
    "flask==3.1.3": ["examples"],
    "fastapi==0.165.0": ["docs_src"],
    "django==5.2.19": ["django/contrib", "tests/auth_tests", "tests/generic_views", "tests/view_tests"],
}
SUFFIXES = {"python": "py", "javascript": "js", "typescript": "ts"}
FOLDER = os.path.join(packages.CACHE, "semgrep")


@dataclass
class Rule:
    """A rule, and what it found: path below the scanned folder → pairs of first and last line."""

    id: str
    pattern: str
    name: str
    languages: list
    technology: list
    confidence: str
    examples: list = field(default_factory=list)  # technology and suffix
    findings: dict = field(default_factory=lambda: defaultdict(list))

    def path(self, technology, suffix, version):
        """The path of an example."""
        return f"patterns/{self.pattern}/{self.name}.{technology}.{version}.{suffix}"

    def own(self, version):
        """The path of the pattern's own code."""
        return f"patterns/{self.pattern}/{version}.py"

    def others(self):
        """What it finds in other versions of the pattern's code that are secure."""
        names = (f"patterns/{self.pattern}/mitigation_", f"patterns/{self.pattern}/idiom_")
        return self.count(lambda path: path.startswith(names))

    def elsewhere(self):
        """What it finds in the secure code of other patterns."""
        return self.count(lambda path: path.endswith("/secure.py") and path != self.own("secure"))

    def application(self, release):
        """What it finds in the example applications of a release."""
        return self.count(lambda path: path.startswith(f"{release}/"))

    def count(self, has):
        """The number of findings in files whose path ``has`` is true for."""
        return sum(len(found) for path, found in self.findings.items() if has(path))


def main():
    """Print the table and the misses; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID", help="only the rules of these patterns")
    parser.add_argument("--semgrep", metavar="PROGRAM", help="an installed semgrep")
    parser.add_argument("--page", action="store_true", help=f"write {page.NAME}")
    args = parser.parse_args()
    patterns = loader.patterns_by_id(["packaged"])
    ids = get.existing(args.ids, patterns) if args.ids else [*patterns]
    if ids is None:
        return 1
    chosen = {id_: patterns[id_] for id_ in ids}
    rules = {rule.id: rule for rule in prepared(patterns, chosen)}
    scan(args.semgrep or installed(), rules)
    wrong = [*misses(rules.values(), patterns)]
    rows = [row(rule) for rule in rules.values()]
    reasons = {id_: reason for id_, (folder, _) in chosen.items() if (reason := semgrep.read(folder)[0].none)}
    text = page.text(rows, len(patterns), reasons)
    print(page.table(rows))
    if args.ids:
        print("".join(f"{line}\n" for rule in rules.values() for line in noise(rule)), end="")
    if args.page and not args.ids:
        page.write(text)
    elif not args.ids and page.read() != text:
        wrong.append(f"{page.NAME} is not current: run `python -m tests.semgrep.run --page`")
    print("".join(f"{line}\n" for line in wrong) + f"{len(rules)} rules, {len(wrong)} misses.")
    return 1 if wrong or not rules else 0


def installed():
    """The path of the program, which is installed if it is not there."""
    return os.path.join(packages.environment("semgrep", SEMGREP), packages.BINARIES, "semgrep")


def prepared(patterns, chosen):
    """Write rules and code below FOLDER, and return the rules. ``chosen``: the patterns whose rules run."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, text in semgrep.files(chosen).items():
        write(f"rules/{name}", text)
    write("code/.semgrepignore", "")  # else semgrep leaves out tests
    for id_, (folder, pattern) in patterns.items():
        for name, text in versions(folder, pattern).items():
            write(f"code/patterns/{id_}/{name}", text)
    for release, folders in APPLICATIONS.items():
        for folder in folders:
            copy(os.path.join(packages.source(release), folder), f"code/{release}/{folder}")
    return [rule for id_, (folder, _) in chosen.items() for rule in read(id_, folder)]


def versions(folder, pattern):
    """The versions of a pattern's code that are scanned: name in the scanned folder → text."""
    names = {}
    if "code" in pattern:
        secure, *others = [
            each["example"] for each in pattern["mitigations"] if "example" in each and "leaves" not in each
        ]
        names = {"vulnerable.py": pattern["code"]["vulnerable"], "secure.py": secure}
        names |= {f"mitigation_{name}": name for name in others}
    texts = {}
    for stack, idiom in idioms.read(folder)[0].items():
        if idiom.app:
            names[f"idiom_{stack}{os.path.splitext(idiom.app)[1]}"] = idiom.app
        elif suffix := SUFFIXES.get(stacks.packaged().stacks[stack]["language"]):
            texts[f"idiom_{stack}.{suffix}"] = idiom.code
    return texts | {name: packages.read(os.path.join(folder, source)) for name, source in names.items()}


def read(id_, folder):
    """Yield the rules of a pattern, and write their examples."""
    for name, data in semgrep.read(folder)[0].rules.items():
        keys = {key: data[key] for key in ("languages", "technology", "confidence")}
        rule = Rule(semgrep.rule_id(id_, name), id_, name, **keys)
        for technology, example in data.get("examples", {}).items():
            for language in rule.languages:
                suffix = SUFFIXES[language]
                rule.examples.append((technology, suffix))
                for version, code in example.items():
                    write(f"code/{rule.path(technology, suffix, version)}", code)
        yield rule


def scan(program, rules):
    """Run semgrep once, and add what it finds to ``rules``: id → rule. Raises SystemExit for an invalid rule."""
    command = [program, "scan", *OPTIONS, "--config", os.path.join(FOLDER, "rules"), "."]
    environment = os.environ | {"SEMGREP_SEND_METRICS": "off", "SEMGREP_ENABLE_VERSION_CHECK": "0"}
    done = subprocess.run(
        command, cwd=os.path.join(FOLDER, "code"), env=environment, capture_output=True, text=True, check=False
    )
    try:
        result = json.loads(done.stdout)
    except ValueError:
        sys.exit(done.stdout + done.stderr)
    if errors := [error for error in result["errors"] if not is_foreign(error.get("path", ""))]:
        sys.exit("\n".join(f"{each.get('path', '')} {each.get('rule_id', '')} {each['message']}" for each in errors))
    for each in result["results"]:
        path = os.path.normpath(each["path"]).replace(os.sep, "/")
        id_ = each["check_id"].rpartition(".")[2] if each["check_id"] not in rules else each["check_id"]
        rules[id_].findings[path].append((each["start"]["line"], each["end"]["line"]))


def is_foreign(path):
    """Whether errors in a file do not count: idioms are parts of files, and applications test parsers."""
    return path.startswith(tuple(APPLICATIONS)) or "/idiom_" in path


def row(rule):
    """The row of a rule in the table."""
    own = "yes" if "python" in rule.languages and finds_mistake(rule) else "-"
    examples = f" + {len(rule.examples)}" if rule.examples else ""
    counts = [rule.others(), rule.elsewhere(), *map(rule.application, APPLICATIONS)]
    return [rule.id, ", ".join(rule.languages), rule.confidence, own + examples, *counts]


def noise(rule):
    """Yield each finding outside of the own vulnerable code and examples."""
    examples = {rule.path(*each, version) for each in rule.examples for version in ("vulnerable", "secure")}
    for path, found in sorted(rule.findings.items()):
        if path not in examples and not path.endswith("/vulnerable.py"):
            yield from (f"{rule.id}: {path}:{first}" for first, _ in found)


def misses(rules, patterns):
    """Yield what is not as it has to be."""
    found, of_python = Counter(), set()
    for rule in rules:
        for path in [rule.own("secure"), *(rule.path(*each, "secure") for each in rule.examples)]:
            if lines := rule.findings.get(path):
                yield f"{rule.id} finds secure code: {path}:{lines[0][0]}"
        for each in rule.examples:
            if not rule.findings.get(path := rule.path(*each, "vulnerable")):
                yield f"{rule.id} finds nothing: {path}"
        if "python" in rule.languages and "code" in patterns[rule.pattern][1]:
            of_python.add(rule.pattern)
            hit = finds_mistake(rule)
            found[rule.pattern] += hit
            if not hit and not rule.examples:
                yield f"{rule.id} finds nothing: {rule.own('vulnerable')}"
    for id_ in sorted(of_python - {id_ for id_, count in found.items() if count}):
        yield f"{id_}: no rule finds a line of vulnerable.py that differs from secure.py"


def finds_mistake(rule):
    """Whether the rule finds a line of vulnerable.py that secure.py does not have, or at which secure.py adds some."""
    vulnerable, secure = (
        packages.read(os.path.join(FOLDER, "code", rule.own(version))).splitlines()
        for version in ("vulnerable", "secure")
    )
    changed = set()
    for tag, first, last, *_ in difflib.SequenceMatcher(None, vulnerable, secure, autojunk=False).get_opcodes():
        if tag != "equal":
            changed |= set(range(first + 1, last + 1)) if first != last else {first, first + 1}
    return any(changed & set(range(first, last + 1)) for first, last in rule.findings.get(rule.own("vulnerable"), ()))


def write(name, text):
    """Write a file below FOLDER."""
    path = os.path.join(FOLDER, *name.split("/"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def copy(source, name):
    """Copy the Python files of a folder to a path below FOLDER."""
    target = os.path.join(FOLDER, *name.split("/"))
    shutil.copytree(source, target, ignore=lambda at, names: [each for each in names if not is_code(at, each)])


def is_code(folder, name):
    """Whether ``name`` is a Python file, or a folder that may contain code of the application."""
    return name.endswith(".py") or (name not in ("locale", "migrations") and os.path.isdir(os.path.join(folder, name)))


if __name__ == "__main__":
    sys.exit(main())
