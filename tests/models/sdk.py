"""``sdk.py PATH``: a JSON Schema of the types in that file, the module ``mcp.types`` of a Python SDK, by revision.

Only that file is loaded: the rest of an old release does not run with the libraries of today.
"""

import importlib.util
import inspect
import json
import sys

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema


def stricter(schema):
    """Without what Python's types add: None for what is absent, and room for more keys beside those that are named."""
    if isinstance(schema, list):
        return [stricter(part) for part in schema if part != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    kept = {key: stricter(value) for key, value in schema.items() if (key, value) != ("default", None)}
    if kept.get("additionalProperties") is True and isinstance(kept.get("properties"), dict):
        del kept["additionalProperties"]
    return kept


spec = importlib.util.spec_from_file_location("types_of_the_sdk", sys.argv[1])
types = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(types)
models = [
    (value, "validation")
    for name, value in vars(types).items()
    if inspect.isclass(value) and issubclass(value, BaseModel) and value.__module__ == spec.name
    if not value.__pydantic_generic_metadata__["parameters"] and "[" not in name
]
json.dump({types.LATEST_PROTOCOL_VERSION: stricter(models_json_schema(models)[1])}, sys.stdout)
