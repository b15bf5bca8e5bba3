"""The report on query logs as one HTML page with plots, which loads nothing and runs no script."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import jinja2

from tmkb.schema import hidden

_TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")


def page(report: Mapping[str, Any], summary: str) -> str:
    """Return the page of a report. ``summary``: a sentence about the questions without an answer."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        finalize=lambda value: hidden.line(value) if type(value) is str else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(**report, summary=summary)
