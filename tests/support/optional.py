"""Optional dependencies: what they are called, where they come from, and how a test without them is skipped."""

import ctypes
import functools
import importlib.util
import os
import shutil

SYSTEM = {
    "libhivex.so.0": "the system package libhivex0",
    "libsystemd.so.0": "the system package libsystemd0",
}
PROGRAMS = {
    "gofmt": "the system package golang-go",
    "javac": "the system package default-jdk-headless",
    "nginx": "the system package nginx-light",
    "openssl": "the system package openssl",
    "php": "the system package php-cli",
    "ruby": "the system package ruby",
    "ssh-keygen": "the system package openssh-client",
}
FROM = {
    "jinja2": "the extra site",
    "uvicorn": "the extra http",
    "h11": "the extra http",
    "httptools": "the extra http",
    "httpx2": "the extra replay",
    "watchfiles": "the extra watch",
    "opentelemetry": "the extra otel",
    "prometheus_client": "the extra metrics",
    "evtx": "the extra sysmcp",
    "Registry": "the extra sysmcp",
    "re2": "the extra regex",
    "sklearn": "the extra train",
    "celery": "the extra proofs",
    "django": "the extra proofs",
    "fastapi": "the extra proofs",
    "flask": "the extra proofs",
    "flask_login": "the extra proofs",
    "flask_sqlalchemy": "the extra proofs",
    "graphql": "the extra proofs",
    "jwt": "the extra auth",
    "joserfc": "the extra dev",
    "cryptography": "the extra auth",
    "sqlalchemy": "the extra proofs",
    "time_machine": "the extra proofs",
    "tree_sitter_c_sharp": "the extra dev",
    "tree_sitter_kotlin": "the extra dev",
    "anyio": "the extra dev",
    "hatchling": "the extra dev",
    "hypothesis": "the extra test",
    "mcp": "the extra dev",
    "pglast": "the extra dev",
    "psycopg": "the extra proofs",
    "redis": "the extra proofs",
    "pyregf": "the extra dev",
    "regipy": "the extra dev",
    "bpe_openai": "the extra dev",
    "syrupy": "the extra test",
    "xdist": "the extra test",
}


POSIX = {"fcntl", "pty", "resource", "termios"}  # modules that Python has only there


@functools.cache
def missing(name):
    """Return why a test that needs the module or library ``name`` is skipped; None if it is there."""
    if name in SYSTEM:
        try:
            ctypes.CDLL(name)
        except OSError:
            return f"needs {name}, of {SYSTEM[name]}"
        return None
    if name in PROGRAMS:
        return None if shutil.which(name) else f"needs {name}, of {PROGRAMS[name]}"
    if name == "node":
        from tmkb.authoring.stacks import express

        lacking = express.missing()
        return f"needs {lacking}" if lacking else None
    try:
        there = importlib.util.find_spec(name) is not None
    except ImportError:  # a meta path hook may refuse it
        there = False
    return None if there else f"needs {name}, of {FROM[name]}"


def skip_instead(collector, report):
    """Return the report of a collection; one that failed for want of an optional module becomes a skip."""
    error = report.call.excinfo and report.call.excinfo.value.__cause__
    root = isinstance(error, ImportError) and (error.name or "").partition(".")[0]
    origin = "a POSIX system" if root in POSIX else FROM.get(root or "")
    if origin is None:
        return report
    report.outcome = "skipped"
    report.longrepr = os.fspath(collector.path), 0, f"Skipped: needs {root}, of {origin}"
    report.__dict__.pop("call")
    return report
