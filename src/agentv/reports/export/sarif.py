"""Diagnostics as SARIF 2.1.0, which code scanners, editors and CI systems read.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

from agentv.errors import Diagnostic, Severity
from agentv.model.values.values import Json, Span
from agentv.reports.diagnostics.diagnostics import full_text
from agentv.reports.diagnostics.explanations import Explanation, render_explanation, render_markdown
from agentv.reports.text.escaping import safe

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
"""What relative addresses begin with, as readers of SARIF call it."""

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "hint": "note"}


def render_sarif(found: Sequence[Diagnostic], rules: Mapping[str, Explanation], *, root: str, version: str) -> str:
    """One SARIF log with one run.

    Args:
        found: in any order.
        rules: code → explanation, for the codes that have one.
        root: absolute path of the repository; files in it get addresses relative to it.
        version: of agentv.
    """
    ordered = sorted(found, key=lambda one: one.order)
    codes = list(dict.fromkeys(one.code for one in ordered))
    run: dict[str, Json] = {
        "tool": {"driver": {"name": "agentv", "version": version, "rules": [_rule(code, rules) for code in codes]}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [_result(one, codes.index(one.code), root) for one in ordered],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str, rules: Mapping[str, Explanation]) -> dict[str, Json]:
    one = rules.get(code)
    if one is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": one.meaning},
        "help": {"text": render_explanation(one), "markdown": render_markdown(one)},
    }


def _result(found: Diagnostic, rule: int, root: str) -> dict[str, Json]:
    result: dict[str, Json] = {
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": _LEVELS[found.severity],
        "message": {"text": safe(full_text(found))},
    }
    if found.span is not None:
        result["locations"] = [{"physicalLocation": _location(found.span, root)}]
    return result


def _location(span: Span, root: str) -> dict[str, Json]:
    return {
        "artifactLocation": _address(span.file, root),
        "region": {
            "startLine": span.line,
            "startColumn": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,  # exclusive, as ours
        },
    }


def _address(path: str, root: str) -> dict[str, Json]:
    """A relative address within the repository, an absolute one outside; both percent-encoded."""
    inside = PurePosixPath(path)
    if inside.is_relative_to(root):
        return {"uri": quote(os.fsencode(str(inside.relative_to(root)))), "uriBaseId": ROOT}
    return {"uri": f"file://{quote(os.fsencode(path))}"}
