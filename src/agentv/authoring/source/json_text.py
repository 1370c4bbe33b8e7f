"""JSON as nodes. Syntax errors and duplicate keys are reported with their positions."""

from __future__ import annotations

import json
from typing import Any

from agentv.authoring.source.nodes import Node, WrittenFloat, node_of
from agentv.authoring.source.report import Report, Result
from agentv.authoring.source.yaml import DEPTH_LIMIT, read_yaml
from agentv.model.values.values import Span, lazy_pattern

_LINE_END = lazy_pattern(r"\r\n|\r|\n")
"""Line ends as editors count them; `json` counts only line feeds."""


def place_of(error: json.JSONDecodeError) -> tuple[int, int]:
    """Position of an error in a JSON text: the number of lines before it, and the column, counted from 1."""
    ends = list(_LINE_END.finditer(error.doc, 0, error.pos))
    return len(ends), error.pos - (ends[-1].end() if ends else 0) + 1


def parse_json(text: str, at: Span, report: Report) -> Node | None:
    """Nodes of a JSON text, all at the position of its start, or None after reporting invalid JSON."""
    try:
        value = _read(text, at, report)
        is_deep = text.count("[") + text.count("{") > DEPTH_LIMIT and _is_deeper(value, DEPTH_LIMIT)
    except RecursionError:
        is_deep = True
    except json.JSONDecodeError as error:
        line, column = (0, error.colno) if at.file.endswith(".jsonl") else place_of(error)
        place = Span(at.file, at.line + line, column, at.line + line, column + 1)
        report.error("bad-json", place, f"not JSON: {error.msg[:1].lower()}{error.msg[1:].removesuffix(' at')}")
        return None
    except ValueError as error:
        digits = "digits" in str(error)  # Python's limit on the digits of an integer
        report.error("bad-json", at, "a number has too many digits" if digits else f"not JSON: {error}")
        return None
    if is_deep:
        report.error("too-deep", at, f"nested more than {DEPTH_LIMIT} levels deep")
        return None
    return node_of(value, at)


def read_json(path: str, text: str, report: Report) -> Result[Node | None]:
    """Nodes of a JSON text with a position for each part, or None after reporting invalid JSON.

    The positions come from reading the text as YAML, with tabs replaced by spaces. YAML does not allow escaped lone
    surrogates; in a text with such an escape, all nodes are at its start.
    """
    loose, exact = Report(), Report()
    node = parse_json(text, Span.start_of(path), loose)
    spaced = text.replace("\t", " ").encode(errors="surrogatepass")
    located = None if node is None else read_yaml(path, spaced, exact).value
    found = loose if located is None else exact
    for one in found.diagnostics:
        report.add(one)
    return Result(located or node, not found.failed)


def read_document(path: str, text: str, report: Report) -> Result[Node | None]:
    """Nodes of a file's text, as JSON if its suffix is `.json`, else as YAML; None after reporting invalid text."""
    return read_json(path, text, report) if path.lower().endswith(".json") else read_yaml(path, text.encode(), report)


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (levels == 0 or any(_is_deeper(one, levels - 1) for one in inner))


def _read(text: str, at: Span, report: Report) -> Any:
    try:
        if not text.startswith("\ufeff"):
            return _DECODER.decode(text)
    except _DuplicateKeyError:
        pass

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                report.error("duplicate-key", at, f"'{key}' appears twice in one object")
            seen.add(key)
        return dict(pairs)

    return json.loads(text, object_pairs_hook=made, parse_constant=_refuse, parse_float=WrittenFloat)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


class _DuplicateKeyError(Exception):
    """A key appears twice in one object."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _DuplicateKeyError
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=WrittenFloat)
"""Fast decoder for valid records. A record with a duplicate key is decoded again, to report the key."""
