"""Make the entry for the MCP registry: `server.json`, with the package, the image and a bundle."""

from typing import Any

from deploy import metadata

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def entry(bundle: str, sha256: str) -> dict[str, Any]:
    """Return the entry. ``bundle``: the name of the file in the release; ``sha256``: its digest."""
    project, repository = metadata.project(), metadata.url("Repository")
    stdio = {"type": "stdio"}
    serve = {"type": "positional", "value": "serve"}
    return {
        "$schema": SCHEMA,
        "name": metadata.registry_name(),
        "title": metadata.TITLE,
        "description": project["description"],
        "version": metadata.VERSION,
        "websiteUrl": metadata.url("Documentation"),
        "repository": {"url": repository, "source": "github"},
        "packages": [
            {
                "registryType": "pypi",
                "identifier": project["name"],
                "version": metadata.VERSION,
                "runtimeHint": "uvx",
                "transport": stdio,
                "packageArguments": [serve],
            },
            {
                "registryType": "oci",
                "identifier": metadata.image(),
                "runtimeHint": "docker",
                "transport": stdio,
            },
            {
                "registryType": "mcpb",
                "identifier": f"{repository}/releases/download/v{metadata.VERSION}/{bundle}",
                "fileSha256": sha256,
                "transport": stdio,
            },
        ],
    }
