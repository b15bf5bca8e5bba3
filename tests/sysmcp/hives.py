"""Helpers: a provider of hives in one folder, hives made by libhivex, and damaged ones."""

import json
import os
import shutil
import struct

from tests.sysmcp.operations import run
from tmkb.errors import ToolError
from tmkb.schema import paths
from tmkb.sysmcp.registry import hivex
from tmkb.sysmcp.registry.provider import Hives

FIXTURE = os.path.join(paths.CONFORMANCE, "sysmcp", "fixtures", "SYSTEM.hive")
WRITABLE = "HKLM\\SYSTEM\\SysMCP\\Writable"
SETTINGS = {
    "mode": "read-write",
    "deny": ["HKLM\\SAM", "HKLM\\SECURITY"],
    "read_allow": [],
    "write_allow": ["HKLM\\SYSTEM\\SysMCP"],
    "page": 200,
    "value_bytes": 65536,
    "answer_bytes": 1_000_000,
    "hive_bytes": 1 << 28,
    "kept_bytes": 1 << 25,
    "cells": 1_000_000,
    "seconds": 30,
    "lock_seconds": 20,
}


class Place:
    """A folder with a hive, backups and an audit log, and the provider that serves it."""

    def __init__(self, folder, **settings):
        self.hive, self.backups, self.audit = (os.path.join(folder, name) for name in ("SYSTEM", "backups", "audit"))
        if not os.path.exists(self.hive):
            shutil.copyfile(FIXTURE, self.hive)
            os.mkdir(self.backups)
        own = {
            "audit": self.audit,
            "backups": {"folder": self.backups, "keep": 3},
            "mounts": {"HKLM\\SYSTEM": self.hive},
        }
        self.provider = Hives({**SETTINGS, **own, **settings}, None)

    def begin(self, name, **arguments):
        """Start the operation and return its generator."""
        return self.provider.operation(name, {"name": f"reg_{name}"})(**arguments)

    def read(self, path, **arguments):
        """Return the result of `reg_read`. Raises ToolError."""
        return run(self.begin("read", path=path, **arguments))

    def write(self, path=WRITABLE, **arguments):
        """Return the result of `reg_write`. Raises ToolError."""
        return run(self.begin("write", path=path, **arguments))

    def value(self, name, path=WRITABLE):
        """Return one value."""
        return self.read(path, valueName=name)["values"][0]

    def bytes(self):
        """The hive."""
        with open(self.hive, "rb") as file:
            return file.read()

    def put(self, data):
        """Replace the hive."""
        with open(self.hive, "wb") as file:
            file.write(data)

    def lines(self):
        """The audit log."""
        with open(self.audit, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def refusal(act, *arguments, **named):
    """Return id and fields of the ToolError that the call raises."""
    try:
        raise AssertionError(act(*arguments, **named))
    except ToolError as error:
        return error.error, error.fields


def sealed(data):
    """``data`` with a header that says its last change was completed."""
    data = bytearray(data)
    struct.pack_into("<II", data, 4, 7, 7)
    checksum = 0
    for (word,) in struct.iter_unpack("<I", data[:0x1FC]):
        checksum ^= word
    struct.pack_into("<I", data, 0x1FC, {0: 1, 0xFFFFFFFF: 0xFFFFFFFE}.get(checksum, checksum))
    return bytes(data)


def mutant(random, data):
    """``data``, broken in one of several ways; most look complete."""
    data = bytearray(data)
    way = random.randrange(4)
    for _ in range(random.randint(1, 12)):
        at, other = (random.randrange(0x1000, len(data) - 4, 4) for _ in range(2))
        if way == 0:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        elif way == 1:
            data[at : at + 4] = data[other : other + 4]  # cells that lead back
        elif way == 2:
            wild = random.choice([0, 0x20, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, random.randrange(1 << 32)])
            struct.pack_into("<I", data, at, wild)
    if way == 3:
        del data[random.randrange(len(data)) :]
    return sealed(data) if len(data) > 0x200 and random.random() < 0.9 else bytes(data)


def made(path, groups, keys, values):
    """A hive with ``groups`` of ``keys`` below HKLM\\SYSTEM\\Many, each with ``values`` (rows of name, type, bytes)."""
    shutil.copyfile(FIXTURE, path)
    library = hivex._library()
    with hivex._open(library, path) as hive:
        many = library.hivex_node_add_child(hive, library.hivex_root(hive), b"Many")
        for group in range(groups):
            parent = library.hivex_node_add_child(hive, many, b"Group%04d" % group)
            for number in range(keys):
                key = library.hivex_node_add_child(hive, parent, b"Key%04d" % number)
                hivex._set(library, hive, key, values(number))
        assert library.hivex_commit(hive, path.encode(), 0) == 0
