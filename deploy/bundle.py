"""Write what is published besides the wheel: two MCP bundles and the entry for the MCP registry.

    python -m deploy.bundle [-o DIR] [--for PLATFORM VERSION]

- ``tmkb-VERSION.mcpb`` (type `uv`, manifest 0.4) has the wheel. uv installs what it requires when a client installs
  the bundle.
- ``tmkb-VERSION-PLATFORM-pyVERSION.mcpb`` (type `python`, manifest 0.3) has all packages, also the compiled ones, so it
  needs no network, but the version of Python and the platform that it was built for.
- ``server.json`` refers to the first bundle by its SHA-256, and to the package and the image by their names.

The same sources give the same bytes: names are sorted, and all times are the same.
"""

import argparse
import functools
import hashlib
import io
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy import metadata
from deploy.registry import entry

START = Path(__file__).resolve().parent / "start.py"
TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can state
HERE = (sysconfig.get_platform().replace("-", "_").replace(".", "_"), "{}.{}".format(*sys.version_info))
SYSTEMS = {
    "linux": "linux",
    "manylinux": "linux",
    "musllinux": "linux",
    "macosx": "darwin",
    "win": "win32",
}  # the beginning of a platform tag → Node's name
PYTHON = "server/main.py"
UV = "main.py"
PROJECT = """\
[project]
name = "tmkb-bundle"
version = "{version}"
requires-python = "{python}"
dependencies = ["tmkb"]

[tool.uv]
package = false

[tool.uv.sources]
tmkb = {{ path = "{wheel}" }}
"""


def bundle(contents: Mapping[str, bytes]) -> bytes:
    """Return the zip file with ``contents``, by path."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(contents.items()):
            member = zipfile.ZipInfo(name, TIME)
            member.external_attr = 0o644 << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def for_uv(wheel: Path) -> dict[str, bytes]:
    """Return the contents of the bundle of type `uv`."""
    command = {"command": "uv", "args": ["run", "--directory", "${__dirname}", UV]}
    versions = {"version": metadata.VERSION, "python": metadata.project()["requires-python"]}
    return {
        "manifest.json": manifest("0.4", {"type": "uv", "entry_point": UV, "mcp_config": command}, {}),
        "pyproject.toml": PROJECT.format(wheel=wheel.name, **versions).encode(),
        UV: START.read_bytes(),
        wheel.name: wheel.read_bytes(),
    }


def for_python(wheel: Path, other: tuple[str, str] | None) -> dict[str, bytes]:
    """Return the contents of the bundle of type `python`. See `packages`."""
    platform, python = other or HERE
    command = {
        "command": "python3",
        "args": ["${__dirname}/" + PYTHON],
        "platform_overrides": {"win32": {"command": "python"}},
    }
    major, minor = python.split(".")
    system = next(name for start, name in SYSTEMS.items() if platform.startswith(start))
    runtimes = {"python": f">={python} <{major}.{int(minor) + 1}"}  # a range as npm writes it
    server = {"type": "python", "entry_point": PYTHON, "mcp_config": command}
    main = START.read_text(encoding="utf-8")
    built_for = f'BUILT_FOR = "{python} on {platform}"'
    return {
        "manifest.json": manifest("0.3", server, {"platforms": [system], "runtimes": runtimes}),
        PYTHON: main.replace('BUILT_FOR = ""', built_for).encode(),
        **{f"server/lib/{name}": content for name, content in packages(wheel, other)},
    }


def manifest(version: str, server: Mapping[str, Any], compatibility: Mapping[str, Any]) -> bytes:
    """Return the manifest of a bundle. ``version``: of its format."""
    project = metadata.project()
    values = {
        "manifest_version": version,
        "name": project["name"],
        "display_name": metadata.TITLE,
        "version": metadata.VERSION,
        "description": project["description"],
        "author": {"name": project["authors"][0]["name"]},
        "repository": {"type": "git", "url": metadata.url("Repository")},
        "documentation": metadata.url("Documentation"),
        "support": metadata.url("Issues"),
        "license": project["license"],
        "keywords": project["keywords"],
        "tools": tools(),
        "server": server,
        **({"compatibility": compatibility} if compatibility else {}),
    }
    return json.dumps(values, indent=2).encode() + b"\n"


@functools.cache
def tools() -> list[dict[str, str]]:
    """Return name and description of each tool of the default server."""
    from tmkb import Server

    defined = Server.load("tmkb").spec["tools"]
    return [{"name": name, "description": tool["description"]} for name, tool in defined.items()]


def packages(wheel: Path, other: tuple[str, str] | None) -> Iterator[tuple[str, bytes]]:
    """Yield the files of ``wheel`` and of all that it requires, as pip chooses them, by path.

    ``other``: a platform and a version of Python; None for those that run.
    """
    chosen = ["--platform", other[0], "--python-version", other[1]] if other else []
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--only-binary=:all:"]
        subprocess.run([*pip, *chosen, "-d", folder, str(wheel)], check=True, stdout=subprocess.DEVNULL)
        for file in sorted(Path(folder).glob("*.whl")):
            with zipfile.ZipFile(file) as archive:
                for name in archive.namelist():
                    if not name.endswith("/"):
                        yield name, archive.read(name)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the checkout in ``folder``, and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=metadata.ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def main() -> None:
    """Write the files, and print the SHA-256 of each."""
    parser = argparse.ArgumentParser(prog="python -m deploy.bundle", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, default=metadata.ROOT / "dist")
    other = "another platform, as in names of wheels, and a version of Python, for example win_amd64 3.12"
    parser.add_argument("--for", nargs=2, metavar=("PLATFORM", "VERSION"), dest="other", help=other)
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            wheel = build_wheel(Path(folder))
        except subprocess.CalledProcessError as error:
            reason = error.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            sys.exit(f"The wheel cannot be built: {reason}. `pip install -e '.[dev]'` installs what this needs.")
        name = f"{metadata.project()['name']}-{metadata.VERSION}"
        files = {
            f"{name}.mcpb": bundle(for_uv(wheel)),
            "{}-{}-py{}.mcpb".format(name, *args.other or HERE): bundle(for_python(wheel, args.other)),
        }
    digest = hashlib.sha256(files[f"{name}.mcpb"]).hexdigest()
    files["server.json"] = json.dumps(entry(f"{name}.mcpb", digest), indent=2).encode() + b"\n"
    for file, content in files.items():
        (args.output / file).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {args.output / file}")


if __name__ == "__main__":
    main()
