"""The page `docs/semgrep.md`, written from what the rules found."""

import os

from tests.support import packages

NAME = "docs/semgrep.md"
PATH = os.path.join(packages.ROOT, *NAME.split("/"))
HEAD = """# Find the mistakes with semgrep

Many patterns have rules for [semgrep](https://semgrep.dev), which finds the typical form of the mistake in Python,
JavaScript and TypeScript code.

```sh
tmkb export semgrep -o rules
semgrep --config rules --metrics off my-application
```

The message of a finding says what goes wrong and how to fix it. Its metadata has CWE, OWASP, references, the id of the
pattern and the confidence. A rule sees syntax and the flow of values in one file. It cannot see who may do what, so a
finding is a question for the author, above all with the confidence LOW: `tmkb get ID` shows the pattern. Code without findings can
still have the mistake.

To use fewer rules, name patterns: `tmkb export semgrep -o rules 7 12`. A later export into the folder replaces the earlier
one; files of your own in it stay.

## Measured

`python -m tests.semgrep.run` writes this table with semgrep 1.182.0. Every rule finds its vulnerable examples and is silent on
the secure ones, else the run fails.

- **vulnerable**: whether the rule finds a line of the pattern's `vulnerable.py` that `secure.py` does not have, and the number
  of its own examples, each with a secure version. A rule with `-` has only examples.
- **variants**: findings in other secure versions of the pattern's code: mitigations and idioms in other stacks.
- **elsewhere**: findings in `secure.py` of all other patterns. Some of them lack a check on purpose, because another pattern is
  about it.
- **Flask**, **FastAPI**, **Django**: findings in the example applications of their source distributions, which are not known to
  have authorization mistakes.
"""
COLUMNS = ("rule", "languages", "confidence", "vulnerable", "variants", "elsewhere", "Flask", "FastAPI", "Django")


def text(rows, count, reasons):
    """Return the page.

    Args:
        rows: the rows of the table, see `table`.
        count: the number of patterns.
        reasons: id of a pattern → why it has no rule.
    """
    with_rules = {rule.rpartition("-auth-")[2][:3] for rule, *_ in rows}
    total = f"{len(rows)} rules for {len(with_rules)} of {count} patterns.\n"
    without = [f"- {id_}: {reason}" for id_, reason in reasons.items()]
    return "\n".join([HEAD, total, table(rows), *(["\n## Without a rule\n", *without] if without else [])]) + "\n"


def table(rows):
    """Return the table in Markdown, with sums. ``rows``: four texts and five numbers."""
    sums = [str(sum(row[at] for row in rows)) for at in range(4, len(COLUMNS))]
    lines = [
        COLUMNS,
        ["---"] * len(COLUMNS),
        *([str(cell) for cell in row] for row in rows),
        ["sum", "", "", "", *sums],
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read():
    """Return the page as it is."""
    return packages.read(PATH) if os.path.exists(PATH) else ""


def write(content):
    """Write the page."""
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(content)
