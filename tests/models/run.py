"""Whether every message that servers emitted while tests ran is one that others' models of its revision know.

    EMITTED=FOLDER python -m pytest && python -m tests.models.run FOLDER

The models are the JSON Schemas in the official conformance suite and, for 2024-11-05, which it leaves out, the types of
the last Python SDK that knew no later revision. Both are installed below ``.cache``. They are taken strictly: an object has no keys but those of its model, unless that says it may. Excepted is an
error whose id is null before 2025-11-25: JSON-RPC demands it where no id could be read, those models lack it. Of the
extension for tasks there is no model; only the shape of its messages is checked.
"""

import argparse
import base64
import collections
import json
import os
import re
import subprocess
import sys

import jsonschema
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for

from tests.support import packages
from tmkb.schema import paths, reader

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = os.path.join(os.path.dirname(HERE), "suite")
OLDER = ("mcp", "mcp==1.6.0")

ASKING = "InputRequiredResult"
SCHEMAS_INSIDE = ("inputSchema", "outputSchema")  # any JSON Schema, of which models show the beginning
NULL_IS_NO_ID = "2025-11-25"  # since then an id that could not be read is left out
METADATA = {"ResultMetaObject", "NotificationMetaObject", "SubscriptionsListenResultMeta"}  # has room for any key
EXTENSION = ("tasks/", "notifications/tasks")  # how the methods of the extension begin


# Models


def models():
    """Revision → model."""
    suite = packages.for_node(SUITE)
    bundle = os.path.join(suite, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
    types = os.path.join(packages.for_python(*OLDER, bare=True), "mcp", "types.py")
    commands = [
        [packages.node(), os.path.join(HERE, "schemas.mjs"), bundle],
        [sys.executable, os.path.join(HERE, "sdk.py"), types],
    ]
    printed = [subprocess.run(command, capture_output=True, check=True).stdout for command in commands]
    return {revision: Model(revision, schema) for text in printed for revision, schema in json.loads(text).items()}


class Model:
    """What a revision says about messages."""

    def __init__(self, revision, schema):
        self.revision = revision
        self.place = "$defs" if "$defs" in schema else "definitions"
        self.definitions = closed(schema[self.place])
        for name in self.definitions.keys() & METADATA:
            self.definitions[name]["additionalProperties"] = True
        self.definitions["EmptyResult"] = {**self.definitions["Result"], "additionalProperties": False}
        self.schema = {**schema, self.place: self.definitions}
        properties = {name: each.get("properties", {}) for name, each in self.definitions.items()}
        self.from_server = self.named("ServerRequest") | self.named("ServerNotification")
        self.methods = {  # method → the definition of its message: a union of one has the same const, and comes before
            each["method"]["const"]: name
            for name, each in sorted(properties.items(), key=lambda item: item[0] in self.from_server)
            if "const" in each.get("method", {})
        }
        self.results = {  # method → the definition of its result
            method: self.result(name) for method, name in self.methods.items() if name in self.named("ClientRequest")
        }
        self.asking = {  # the methods whose result can be that more is asked for
            method
            for method, name in self.methods.items()
            if ASKING in self.union(properties.get(f"{name.removesuffix('Request')}ResultResponse", {}).get("result"))
        }
        self.errors = {  # code → the definition of its message
            part["properties"]["code"]["const"]: name
            for name, each in properties.items()
            for part in each.get("error", {}).get("allOf", [])
            if "properties" in part
        }
        self.validators = {}

    def named(self, name):
        """The definitions that are alternatives of the one called so; none where the revision has no such messages."""
        return self.union(self.definitions.get(name))

    def union(self, schema):
        """The definitions that are alternatives in a schema."""
        return {each["$ref"].rpartition("/")[2] for each in (schema or {}).get("anyOf", [])}

    def result(self, request):
        """The definition of the result of a request, called like it: XRequest, XResult. Without one it is empty."""
        name = request.removesuffix("Request") + "Result"
        return name if name in self.definitions else "EmptyResult"

    def complaints(self, method, message):
        """Everything that is wrong with a message, the method of which (or of its request) is known or None."""
        if self.excepted(message):
            message = {**message, "id": 0}
        found = self.unlike("JSONRPCMessage", message)
        if found or self.beyond(method, message):
            return found
        if "method" in message:
            return self.unlike_own(message)
        if "error" in message:
            definition = self.errors.get(message["error"]["code"])
            return self.unlike(definition, message) if definition else []
        return self.unlike_result(method, unwrapped(message["result"]))

    def excepted(self, message):
        """Whether it is an error of which the id could not be read, under a revision without a shape for that."""
        null = isinstance(message, dict) and "error" in message and message.get("id", 0) is None
        return null and self.revision < NULL_IS_NO_ID

    def beyond(self, method, message):
        """Whether it is one of the extension, which belongs to the revision that asks in results."""
        task = isinstance(method, str) and method.startswith(EXTENSION)
        return self.asking and (task or message.get("result", {}).get("resultType") == "task")

    def unlike_own(self, message):
        """What is wrong with a request or notification. Some models leave out the keys that all have."""
        definition = self.methods.get(message["method"])
        if definition not in self.from_server:
            return [f"no server sends {message['method']}"]
        common = {"jsonrpc", "id"} - set(self.definitions[definition]["properties"])
        return self.unlike(definition, {key: value for key, value in message.items() if key not in common})

    def unlike_result(self, method, result):
        """What is wrong with a result; one of a request that is not known has to have the shape of some result."""
        if method is None:
            shapes = [
                name for name in self.results.values() if self.definitions[name].get("additionalProperties") is False
            ]
            return [] if any(not self.unlike(name, result) for name in shapes) else ["no request has such a result"]
        if method not in self.results:
            return [f"a result of {method}, which no client asks for"]
        if method in self.asking and result.get("resultType") == "input_required":
            return self.unlike(ASKING, result)
        return self.unlike(self.results[method], result)

    def unlike(self, definition, value):
        """Why a value is not what a definition describes: one reason for each fault."""
        if definition not in self.validators:
            schema = {**self.schema, "$ref": f"#/{self.place}/{definition}"}
            self.validators[definition] = validator_for(schema)(schema, format_checker=FORMATS)
        reasons = map(best_match, ([error] for error in self.validators[definition].iter_errors(value)))
        return [f"{definition}: {reason.json_path}: {reason.message[:300]}" for reason in reasons]


def unwrapped(result):
    """``result`` without the envelope of a server that has them, which is also the text of its content: results may have
    keys of a server's own (Basic, Messages)."""
    envelope = {key: result[key] for key in ("success", "data", "error") if key in result}
    texts = [block.get("text") for block in result.get("content", []) if isinstance(block, dict)]
    if "success" not in envelope or texts != [json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))]:
        return result
    return {key: value for key, value in result.items() if key not in envelope}


def closed(schema, inside=""):
    """The schema without room for keys that it does not name, except where it says so, or is one part of several."""
    if isinstance(schema, list):
        return [part if inside == "allOf" else closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: part if key in SCHEMAS_INSIDE else closed(part, key) for key, part in schema.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        found.setdefault("additionalProperties", False)
    return found


FORMATS = jsonschema.FormatChecker(formats=())


@FORMATS.checks("uri")
def is_address(value):
    """A scheme, and characters that addresses may have."""
    return not isinstance(value, str) or re.fullmatch(r"[A-Za-z][\w+.-]*:[\w.~:/?#\[\]@!$&'()*+,;=%-]*", value, re.A)


@FORMATS.checks("uri-template")
def is_template(value):
    """Names between braces."""
    return not isinstance(value, str) or re.fullmatch(r"([^{}\s]|\{[^{}\s]+\})*", value)


@FORMATS.checks("byte", raises=ValueError)
def is_base64(value):
    """Bytes as text."""
    return not isinstance(value, str) or base64.b64decode(value, validate=True) is not None


# Messages


def unnoticed(known):
    """The made-up messages of wrong.yaml on which a model is mistaken."""
    for each in reader.read(os.path.join(HERE, "wrong.yaml")).mapping()["messages"]:
        for revision, model in known.items():
            found = model.complaints(each["method"], each["message"])
            if bool(found) != (revision in each.get("revisions", known)):
                yield f"{revision}: {each['why']}: {found or 'not noticed'}"


def emitted(folder):
    """Revision → the messages in a folder, each as (method, message), and how often there is one like it."""
    found = collections.defaultdict(collections.Counter)
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for note in map(json.loads, file):
                found[note["revision"]][json.dumps([note["method"], without_id(note["message"])])] += 1
    return found


def without_id(message):
    """A message with an id that stands for all of its kind."""
    if isinstance(message, dict) and type(message.get("id")) in (int, str):
        return {**message, "id": type(message["id"])()}
    return message


def offered():
    """The revisions that our servers speak. Tests make up others, of which there can be no model."""
    return [os.path.splitext(name)[0] for name in os.listdir(os.path.join(paths.SCHEMAS, "protocol"))]


def judged(revision, model, messages):
    """Print what is wrong with the messages of a revision; how many they are, are distinct, excepted and wrong."""
    excepted = wrong = 0
    for method, message in map(json.loads, messages):
        complaints = model.complaints(method, message)
        excepted += model.excepted(message)
        wrong += bool(complaints)
        if complaints:
            print(f"{revision} {method} {json.dumps(message)[:500]}", *complaints, sep="\n    ")
    return messages.total(), len(messages), excepted, wrong


def main():
    """Check what a folder has; 1 where a message is wrong, or a model is mistaken about the made-up ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="where EMITTED has told the tests to write")
    messages = emitted(parser.parse_args().folder)
    known = models()
    mistakes = list(unnoticed(known))
    print(*(f"The check is mistaken: {mistake}\n" for mistake in mistakes), sep="", end="")
    for revision in sorted(set(messages) - set(known)):
        print(f"{revision}: {messages[revision].total()} messages without a model")
    rows = [(revision, *judged(revision, model, messages[revision])) for revision, model in sorted(known.items())]
    for row in [("revision", "messages", "distinct", "excepted", "invalid"), *rows]:
        print("{:12}{:>10}{:>10}{:>10}{:>10}".format(*row))
    unseen = any(total == 0 for _, total, *_ in rows) or set(offered()) - set(known)
    return 1 if mistakes or unseen or any(wrong for *_, wrong in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
