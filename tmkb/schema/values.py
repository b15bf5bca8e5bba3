"""The one name for what JSON and our YAML can hold. Imported for type checking only."""

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]
