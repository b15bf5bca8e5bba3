import csv
import io

from flask import abort, current_app


def rows(text, required):
    """The rows of a CSV file as dicts. Aborts with 400 if a column is missing or the file is too long."""
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in required if name not in (reader.fieldnames or [])]
    if missing:
        abort(400, f"Missing columns: {', '.join(missing)}")
    found = list(reader)
    if len(found) > current_app.config["MAX_IMPORT_ROWS"]:
        abort(400, "Too many rows")
    return found
