"""A provider that counts what a store has in stock."""

import json
from typing import ClassVar

from tmkb import Provider, Result, ToolError


class Inventory(Provider):
    """Answers from the setting ``stock``, a map of item → count."""

    operations: ClassVar = {"count": ("item",)}  # operation → facts for the tool's log line
    settings_schema = "settings.json"  # beside this file

    def count(self, item: str) -> Result:
        """Return how many of ``item`` there are."""
        if item not in self.settings["stock"]:
            raise ToolError("no_item", item=item)
        answer = {"item": item, "count": self.settings["stock"][item]}
        return Result([{"type": "text", "text": json.dumps(answer)}], facts={"item": item})
