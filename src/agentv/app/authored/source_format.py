"""Detection of the tool that a file was made for, for `agentv convert`."""

from __future__ import annotations

from pathlib import Path

from agentv.authoring.convert.records import LISTS, SUFFIXES, Findings, first_record, json_root
from agentv.authoring.dialects.recognition import (
    AGENTV,
    CHECKED,
    Claim,
    by_content,
    by_record,
    dialect,
    dialects,
    may_be_document,
    named_by,
    refuse_unreadable,
)
from agentv.authoring.fields.spellings import CASE
from agentv.authoring.source.nodes import ListNode, MapNode
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import LoadError, UsageError
from agentv.registry.extensions import DIALECTS
from agentv.user_code.plugins import added, usable


def format_of(source: Path) -> str:
    """The format of a file or directory; what is of no other tool is agentv's.

    Raises:
        UsageError: it may be of several tools, of none that is known, or of one whose extension is not here.
        LoadError: it is no JSON, or no text.
        OSError: it cannot be read.
    """
    refuse_unreadable(str(source))
    if source.suffix in (".yaml", ".yml") and not source.is_dir():
        return _of_yaml(source)
    if source.is_dir() or source.suffix not in SUFFIXES or _has_sidecar(source):
        return AGENTV
    return _of_records(source)


def _of_yaml(source: Path) -> str:
    data = source.read_bytes()
    root = read_yaml(str(source.absolute()), data, Report()).value if may_be_document(str(source), data) else None
    if root is not None and (claims := by_content(str(source.absolute()), root, data)):
        return _name_of(source, claims)
    for one in usable(DIALECTS, added(DIALECTS)):
        one.refuse(source)
    return AGENTV


def _of_records(source: Path) -> str:
    findings = Findings()
    if source.suffix == ".json":
        root = json_root(str(source), findings)
        data = source.read_bytes()
        claims = by_content(str(source.absolute()), root, data) if root and may_be_document(str(source), data) else ()
        if claims:
            return _name_of(source, claims)
        if isinstance(root, MapNode) and not any(isinstance(root.get(key), ListNode) for key in LISTS):
            return AGENTV
    record = first_record(str(source), findings)
    if record is None and findings.failed:
        raise LoadError(findings.diagnostics)
    return AGENTV if record is None else _of_samples(source, record)


def _of_samples(source: Path, record: MapNode) -> str:
    found = by_record(record.items)
    if len(found) == 1:
        return _name_of(source, found)
    hint = named_by((AGENTV, *dialects()))
    if found:
        titles = " or ".join(dialect(claim.name).title for claim in found if claim.name)
        raise UsageError(f"{source} may contain {titles}", hint)
    is_case = bool(record.items.keys() & (CHECKED | set(CASE.spelled("id"))))
    if source.suffix == ".json" or (source.suffix == ".jsonl" and not is_case):
        raise UsageError(f"{source} is not recognized: its first entry has {_keys(list(record.items))}", hint)
    return AGENTV


def _name_of(source: Path, claims: tuple[Claim, ...]) -> str:
    """The dialect that claims a file.

    Raises:
        UsageError: several do, or its extension is not here.
    """
    names = [claim.name for claim in claims if claim.name is not None]
    if not names:
        raise UsageError(f"{source} {claims[0].needs}")
    if len(names) > 1:
        raise UsageError(f"{source} is claimed by {len(names)} dialects", named_by(names))
    return names[0]


def _keys(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:5])
    return f"the keys {shown}{' and more' if len(names) > 5 else ''}" if names else "no keys"


def _has_sidecar(source: Path) -> bool:
    return any(source.with_suffix(suffix).is_file() for suffix in (".yaml", ".yml")) and source.suffix != ".json"
