"""Samples of other tools, given as eval files: recognized where that is certain, and refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentv.authoring.dialects.dialect import SampleDialect
from agentv.authoring.dialects.recognition import by_name, by_record, dialect
from agentv.authoring.source.files import TABLES, is_file, shown
from agentv.authoring.source.nodes import ListNode, MapNode, Node
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, UsageError
from agentv.model.values.span import Span


def refuse_unreadable(written: str) -> None:
    """Refuse a file whose name shows that it is another tool's, where it is not read or its extension is not here.

    Raises:
        UsageError: it is one; the hint says what to do.
    """
    claim = by_name(written)
    if claim is not None and claim.needs:
        raise UsageError(f"{written} {claim.needs}")
    if claim is not None:
        dialect(str(claim.name)).refuse(Path(written))


def of_json(path: str, root: Node) -> Diagnostic | None:
    """Diagnostic for a JSON file that is a list of another tool's samples; None if that is uncertain."""
    if not path.endswith(".json"):
        return None
    from agentv.authoring.convert.records import listed

    samples = listed(root)
    first = samples.items[0] if isinstance(samples, ListNode) and samples.items else None
    return _samples(path, first) if isinstance(first, MapNode) else None


def of_stream(path: str) -> Diagnostic | None:
    """The same for a JSON Lines or CSV file; never for one with a sidecar, which makes it a suite."""
    has_sidecar = any(is_file(str(Path(path).with_suffix(suffix))) for suffix in (".yaml", ".yml"))
    if has_sidecar or path.endswith(TABLES) or not is_file(path):  # a pipe can be read only once
        return None
    from agentv.authoring.convert.findings import Findings
    from agentv.authoring.convert.records import first_record

    try:
        record = first_record(path, Findings())
    except OSError:
        return None
    return _samples(path, record) if record is not None else None


def cases_of_samples(path: str, report: Report) -> Sequence[MapNode] | None:
    """The cases of samples that say themselves what is right; None where a file holds others, or none."""
    from agentv.authoring.convert.findings import Findings
    from agentv.authoring.convert.records import SUFFIXES, first_record

    if not path.endswith(SUFFIXES):
        return None
    try:
        record = first_record(path, Findings())
        names = [claim.name for claim in by_record(record.items)] if record is not None else []
        found = dialect(names[0]) if len(names) == 1 and names[0] is not None else None
        return found.cases(path, report) if isinstance(found, SampleDialect) else None
    except OSError:
        return None


def _samples(path: str, record: MapNode) -> Diagnostic | None:
    claims = by_record(record.items)
    if len(claims) != 1:
        return None
    import shlex  # only for a file of another tool

    claim, at = claims[0], Span(path, 1, 1, 1, 2)
    if claim.needs:
        return Diagnostic("bad-eval-file", f"this file contains samples of another tool, which {claim.needs}", at)
    hint = f"convert it: agentv convert {shlex.quote(shown(path))}"
    return Diagnostic("bad-eval-file", f"this file contains {dialect(str(claim.name)).title}", at, hint=hint)
