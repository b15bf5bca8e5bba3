"""Types of the values in JSON and in our YAML. Imported for type checking only."""

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]
