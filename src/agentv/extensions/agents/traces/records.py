"""The records of a stream: JSON Lines, one JSON array, or one JSON document over several lines."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from agentv.extensions.agents.traces.values import Problems
from agentv.model.values.json_text import parse

LARGEST = 256_000_000
"""Bytes of a file that is imported."""

_BOM = b"\xef\xbb\xbf"


def records_of(data: bytes, problems: Problems) -> Iterator[tuple[int, Any]]:
    """Each record with the line where it stands. A line that cannot be read is noted, and passed over."""
    data = data.removeprefix(_BOM)
    whole = _whole(data)
    if whole is not None:
        line = data[: len(data) - len(data.lstrip())].count(b"\n") + 1
        yield from ((line, one) for one in (whole if isinstance(whole, list) else [whole]))
        return
    for number, row in enumerate(io.BytesIO(data), 1):
        if not row.strip():
            continue
        try:
            value = parse(row)
        except ValueError as error:
            ending = number > 1 and not row.endswith(b"\n")
            problems.note(f"line {number}: " + ("the stream ends in the middle of a record" if ending else str(error)))
            continue
        yield number, value


def _whole(data: bytes) -> Any:
    """The document, if the data is one rather than lines; None if it is lines."""
    first, _, rest = data.strip().partition(b"\n")
    if rest and not first.startswith(b"["):
        try:
            parse(first)
        except ValueError:
            pass
        else:
            return None
    try:
        return parse(data.strip())
    except ValueError:
        return None
