"""Are the bundles and the entry for the MCP registry what they should be?

    python -m tests.bundle.run

Builds them twice, with equal bytes. The official program `mcpb` validates the manifests and unpacks the bundles. Each is started
with the command of its manifest, as a client would: in an empty folder, with a short PATH; the one of type `uv` by the real uv, which
installs its packages. The entry is validated against its official schema, which the package `skillsaw` has.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

from deploy import metadata, registry
from tests.support import packages, programs

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMAS = ("skillsaw", "skillsaw==0.22.0")
UV = ("uv", "uv==0.9.*")


def build(folder):
    """Write the files with `python -m deploy.bundle`, and return their content by name."""
    command = [sys.executable, "-m", "deploy.bundle", "-o", folder]
    subprocess.run(command, cwd=packages.ROOT, check=True, stdout=subprocess.DEVNULL)
    return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def unpack(bundle, folder):
    """Validate the manifest of a bundle, unpack it with the official program, and return the manifest."""
    tool = packages.for_node(HERE)
    environment = packages.with_node(os.environ, tool)
    program = [os.path.join(tool, "node_modules", ".bin", "mcpb")]
    subprocess.run([*program, "unpack", bundle, folder], env=environment, stdout=subprocess.DEVNULL, check=True)
    manifest = os.path.join(folder, "manifest.json")
    subprocess.run([*program, "validate", manifest], env=environment, stdout=subprocess.DEVNULL, check=True)
    return json.loads(packages.read(manifest))


def command_of(manifest, folder):
    """Return the command of a manifest for this platform, with the folder of the bundle in it."""
    started = manifest["server"]["mcp_config"]
    started = {**started, **started.get("platform_overrides", {}).get(sys.platform, {})}
    return [word.replace("${__dirname}", folder) for word in (started["command"], *started["args"])]


def answer(command, environment):
    """Start a server in an empty folder, and return its name, its version, its tools and the text of an answer."""
    with tempfile.TemporaryDirectory() as empty:
        started = [shutil.which(command[0], path=environment["PATH"]), *command[1:]]
        server, tools, called = programs.exchange(
            started, ("tools/list", {}), programs.QUERY, cwd=empty, env=environment
        )
    return server, tools["tools"], called["content"][0]["text"]


def check_bundle(bundle, place):
    """Unpack a bundle, start its server, and compare what it says with the manifest."""
    folder = os.path.join(place, Path(bundle).stem)
    manifest = unpack(bundle, folder)
    uv = os.path.join(packages.environment(*UV), packages.BINARIES)
    kept = {key: os.environ[key] for key in os.environ if key.startswith(("UV_", "SSL_", "PIP_", "HTTP", "http"))}
    environment = {
        **kept,
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), uv, "/usr/bin"]),
        "HOME": os.path.join(place, "home"),
        "UV_CACHE_DIR": os.path.join(packages.CACHE, "uv"),
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
    }
    server, tools, text = answer(command_of(manifest, folder), environment)
    assert {key: server[key] for key in ("name", "version")} == {key: manifest[key] for key in ("name", "version")}
    assert [{key: tool[key] for key in ("name", "description")} for tool in tools] == manifest["tools"]
    assert json.loads(text)["patterns"][0]["id"] == "TMKB-AUTH-001"
    assert manifest["version"] == metadata.VERSION
    size = os.path.getsize(bundle)
    print(f"{Path(bundle).name}: type {manifest['server']['type']}, {size / 1e6:.1f} MB, valid, and answers")
    return folder


def check_wrong_python(folder):
    """A bundle with compiled packages says which version of Python it needs."""
    start = Path(folder, "server", "main.py")
    start.write_text(re.sub('BUILT_FOR = ".*?"', 'BUILT_FOR = "3.0 on somewhere"', start.read_text()))
    done = subprocess.run([sys.executable, start], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("This bundle is for Python 3.0 on somewhere, and"), done


def check_entry(entry):
    """The entry follows the official schema, has no key that the schema does not know, and agrees with the package."""
    folder = packages.for_python(*SCHEMAS, bare=True)
    date = registry.SCHEMA.split("/")[-2].replace("-", "_")
    file = os.path.join(folder, "skillsaw", "schemas", "mcp_registry", f"v{date}", "server.schema.json")
    schema = json.loads(packages.read(file))
    assert schema["$id"] == entry["$schema"]
    jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(entry)
    known = {name: definition.get("properties", {}) for name, definition in schema["definitions"].items()}
    detail = {**known["ServerDetail"], **{"$schema": {}}}
    assert {*entry} <= {*detail} and {*entry["repository"]} <= {*known["Repository"]}
    assert all({*package} <= {*known["Package"]} for package in entry["packages"])
    versions = {entry["version"], *(package["version"] for package in entry["packages"] if "version" in package)}
    assert versions == {metadata.VERSION}
    readme = packages.read(os.path.join(packages.ROOT, "README.md"))
    assert f"<!-- mcp-name: {entry['name']} -->" in readme, "README.md has another name for the MCP registry"
    print(f"server.json: valid, {entry['name']} {entry['version']}, {len(entry['packages'])} packages")


def main():
    """Check all files, and print a line for each."""
    with tempfile.TemporaryDirectory() as place:
        files = build(os.path.join(place, "one"))
        assert files == build(os.path.join(place, "other")), "two builds differ"
        for name in sorted(files):
            if name.endswith(".mcpb"):
                folder = check_bundle(os.path.join(place, "one", name), place)
                if os.path.isdir(os.path.join(folder, "server")):
                    check_wrong_python(folder)
        check_entry(json.loads(files["server.json"]))


if __name__ == "__main__":
    main()
