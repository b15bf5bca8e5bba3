"""Write the software bill of materials (SBOM) of the wheel, in the format CycloneDX.

    python -m deploy.sbom [-o DIR]

`tmkb.cdx.json` has the packages that pip installs for the wheel with all extras for users: release, licence, and what
each requires. This needs the packages of `.ci/requirements/release.txt`. cyclonedx-py validates the file against the
schema of CycloneDX before it writes it.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from deploy import metadata
from deploy.bundle import build_wheel

NAME = "tmkb.cdx.json"
FOR_CONTRIBUTORS = {"dev", "proofs", "test"}  # extras


def environment(folder: Path, wheel: Path) -> Path:
    """Install ``wheel`` with its extras, without pip, in ``folder``; return the path of its Python."""
    extras = sorted(metadata.project()["optional-dependencies"].keys() - FOR_CONTRIBUTORS)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (python,) = (*folder.glob("bin/python"), *folder.glob("Scripts/python.exe"))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{wheel}[{','.join(extras)}]"], check=True)
    return python


def project_file(folder: Path) -> Path:
    """Write pyproject.toml with the version in it into ``folder``, since the SBOM states what that file states."""
    text = (metadata.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    file = folder / "pyproject.toml"
    file.write_text(text.replace('dynamic = ["version"]', f'version = "{metadata.VERSION}"'), encoding="utf-8")
    return file


def main() -> None:
    """Write the SBOM, and print its path."""
    parser = argparse.ArgumentParser(prog="python -m deploy.sbom", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, default=metadata.ROOT / "dist")
    target = parser.parse_args().output / NAME
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = environment(folder / "environment", build_wheel(folder))
        command = [sys.executable, "-m", "cyclonedx_py", "environment", str(python), "--output-reproducible"]
        subprocess.run([*command, "--pyproject", str(project_file(folder)), "-o", str(target)], check=True)
    print(target)


if __name__ == "__main__":
    main()
