"""What `tmkb review --sarif` prints, in the validator of SARIF's authors: no error and no warning.

python -m tests.sarif.run
"""

import json
import os
import subprocess
import sys
import tempfile

from tests.support import packages

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join("node_modules", "@microsoft", "sarif-multitool-linux", "Sarif.Multitool")
EXAMPLES = os.path.join(packages.ROOT, "patterns")
WITHOUT_CULTURE = {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}  # else .NET needs a library of the system
IGNORED = {  # recommendations that do not fit: one has no public page for each rule, and a diff has no revision
    "SARIF2012",
    "SARIF2010",
    "SARIF2016",
    "SARIF2005",
}


def main():
    """Print each finding; 1 if there is any, or if nothing was reviewed."""
    tool = os.path.join(packages.for_node(HERE), TOOL)
    os.chmod(tool, 0o755)
    with tempfile.TemporaryDirectory() as folder:
        log, report = (os.path.join(folder, name) for name in ("review.sarif", "report.sarif"))
        with open(log, "w", encoding="utf-8") as file:
            command = [sys.executable, "-m", "tmkb", "review", "--sarif", "--exit-zero", "patterns"]
            subprocess.run(command, cwd=packages.ROOT, stdout=file, check=True)
        command = [tool, "validate", log, "-o", report, "--quiet", "true"]
        subprocess.run(command, env={**os.environ, **WITHOUT_CULTURE}, check=False)
        with open(log, encoding="utf-8") as file:
            results = json.load(file)["runs"][0]["results"]
        with open(report, encoding="utf-8-sig") as file:
            found = [each for run in json.load(file)["runs"] for each in run["results"]]
    found = [each for each in found if each["ruleId"] not in IGNORED]
    for each in found:
        print(each["ruleId"], each["message"].get("text") or each["message"].get("arguments"))
    print(f"{len(results)} comments, {len(found)} findings of the validator")
    return int(bool(found) or not results)


if __name__ == "__main__":
    sys.exit(main())
