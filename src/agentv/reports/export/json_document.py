"""A whole run as one JSON document: its record, its summary and every row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from agentv.model.run.trial import SCHEMA_VERSION
from agentv.model.values.values import JsonObject


def render_document(record: JsonObject, summary: JsonObject, rows: Iterable[str]) -> Iterator[str]:
    """The document piece by piece: `schema_version`, `run`, `summary`, then `rows`, each on a line of its own.

    Args:
        record: the object of `run.json`.
        summary: that of `summary.json`.
        rows: JSON text of each row, which is taken as it is.
    """
    yield f'{{\n"schema_version": {SCHEMA_VERSION},\n'
    yield f'"run": {json.dumps(record)},\n"summary": {json.dumps(summary)},\n"rows": ['
    for number, row in enumerate(rows):
        yield f"{',' if number else ''}\n{row}"
    yield "\n]\n}\n"
