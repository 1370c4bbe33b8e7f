"""The YAML file next to the cases of a JSON Lines or CSV file, which contains all other keys (SPEC section 2)."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from agentv.authoring.fields.agentv.spellings import SUITE
from agentv.authoring.loading.context import SuiteContext
from agentv.authoring.source.files import is_file
from agentv.authoring.source.nodes import MapNode, kind_of
from agentv.authoring.source.yaml import read_yaml
from agentv.model.values.lazy_pattern import lazy_pattern

TESTS = frozenset(SUITE.spelled("tests"))
"""Keys of an eval file that say where its cases are."""

_TESTS_KEY = lazy_pattern(
    rb"""(?:^|[{,]\s*)["']?(?:""" + b"|".join(key.encode() for key in sorted(TESTS)) + rb""")["']?\s*:""", re.MULTILINE
)


class Sidecar(Struct, frozen=True):
    """Content of a sidecar.

    Attributes:
        root: its mapping; empty if there is no sidecar, or if it cannot be read.
        valid: whether it is valid; mistakes have been reported.
        renders: it may contain placeholders; None if it is empty.
    """

    root: MapNode
    valid: bool = True
    renders: bool | None = None


def read_sidecar(context: SuiteContext) -> Sidecar:
    """The suite's keys, from the YAML file of the same name next to the cases."""
    nothing, report = MapNode({}, {}, context.top), context.report
    cases = Path(context.path)
    path = next((str(p) for s in (".yaml", ".yml") if (p := cases.with_suffix(s)).is_file()), None)
    data = context.bytes_of(path) if path is not None else None
    if path is None or data is None:
        return Sidecar(nothing)
    root, valid = read_yaml(path, data, report)
    if not isinstance(root, MapNode):
        if root is not None:
            report.error("bad-eval-file", root, f"a sidecar is a mapping, found {kind_of(root)}")
        return Sidecar(nothing, valid)
    for key in root.items.keys() & TESTS:
        message = f"the cases are in {cases.name}; its sidecar takes no '{key}'"
        report.error("bad-eval-file", root.keys[key], message)
    return Sidecar(root, valid, b"{{" in data or b"{%" in data)


def cases_beside(path: str) -> str | None:
    """The JSON Lines file whose sidecar a YAML file is; None where it says itself where its cases are."""
    cases = Path(path).with_suffix(".jsonl")
    if not cases.is_file() or not is_file(path) or _TESTS_KEY.search(Path(path).read_bytes()):
        return None
    return str(cases)
