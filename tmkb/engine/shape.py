"""Makes an outgoing object fit the revision it is sent under: the only place where peers see different fields."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tmkb.spec.model import Fields
    from tmkb.values import JsonObject


def fit(known: Fields, values: Mapping[str, Any]) -> JsonObject:
    """The fields of ``values`` that the revision knows, in the revision's order; absent ones stay absent."""
    return {name: values[name] for name in known["fields"] if name in values}
