"""Files of other tools, given as eval files: recognized where that is certain, with the command that converts them."""

from __future__ import annotations

import re
from pathlib import Path

from agentv.authoring.cases.data_files.files import TABLES
from agentv.authoring.source.files import is_file, shown
from agentv.authoring.source.nodes import ListNode, MapNode, Node
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, UsageError
from agentv.model.values.span import Span

_PROMPTFOO = re.compile(r"promptfooconfig\.(?:ya?ml|json)")
_IN_JAVASCRIPT = re.compile(r"promptfooconfig\.[cm]?[jt]s")
_EXPORT = "promptfoo export eval latest -o promptfoo.json"


def refuse_javascript(written: str) -> None:
    """Refuse a promptfoo configuration that is a program.

    Raises:
        UsageError: it is one; the hint says how to export it.
    """
    if _IN_JAVASCRIPT.fullmatch(Path(written).name):
        message = f"{written} is a promptfoo configuration in JavaScript or TypeScript, which agentv does not read"
        raise UsageError(message, f"export it after a run ({_EXPORT}), then: agentv convert promptfoo.json")


def named_configuration(path: str) -> Diagnostic | None:
    """Diagnostic for a file whose name makes it a promptfoo configuration; None for every other file."""
    if not _PROMPTFOO.fullmatch(Path(path).name):
        return None
    return _other(path, "this is a promptfoo configuration")


def configuration(path: str, data: bytes) -> Diagnostic | None:
    """Diagnostic for an invalid suite whose keys are those of a promptfoo configuration."""
    if b"prompts" not in data or not (b"providers" in data or b"targets" in data):
        return None
    from agentv.authoring.source.yaml import read_yaml
    from agentv.extensions.promptfoo.translation.configuration import is_promptfoo  # only for a file that is wrong

    root = read_yaml(path, data, Report()).value  # as a whole, with its tests
    return _other(path, "this looks like a promptfoo configuration") if is_promptfoo(Path(path), root) else None


def samples_of_json(path: str, root: Node) -> Diagnostic | None:
    """Diagnostic for a JSON file that is a list of another tool's samples; None if that is uncertain."""
    if not path.endswith(".json"):
        return None
    samples = root.get("goldens") if isinstance(root, MapNode) else root
    first = samples.items[0] if isinstance(samples, ListNode) and samples.items else None
    return _samples(path, first) if isinstance(first, MapNode) else None


def samples_of_stream(path: str) -> Diagnostic | None:
    """The same for a JSON Lines or CSV file; never for one with a sidecar, which makes it a suite."""
    has_sidecar = any(is_file(str(Path(path).with_suffix(suffix))) for suffix in (".yaml", ".yml"))
    if has_sidecar or path.endswith(TABLES) or not is_file(path):  # a pipe can be read only once
        return None
    from agentv.extensions.datasets.records import first_record
    from agentv.extensions.datasets.sample import Findings

    try:
        record = first_record(path, Findings())
    except OSError:
        return None
    return _samples(path, record) if record is not None else None


def _samples(path: str, record: MapNode) -> Diagnostic | None:
    from agentv.extensions.datasets.detection import TITLES, formats_of

    found = formats_of(record.items)
    return _other(path, f"this file contains {TITLES[found[0]]}") if len(found) == 1 else None


def _other(path: str, message: str) -> Diagnostic:
    import shlex  # only for a file of another tool

    hint = f"convert it: agentv convert {shlex.quote(shown(path))}"
    return Diagnostic("bad-eval-file", message, Span(path, 1, 1, 1, 2), hint=hint)
