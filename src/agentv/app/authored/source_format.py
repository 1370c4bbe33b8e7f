"""Detection of the tool that a file was made for, for `agentv convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from agentv.authoring.exams.detection import holds_skill_tests
from agentv.authoring.loading.other_tools import refuse_javascript
from agentv.authoring.source.nodes import ListNode, MapNode, Node
from agentv.authoring.source.report import Report
from agentv.authoring.source.spellings import CASE
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import LoadError, UsageError
from agentv.extensions.datasets.detection import CHECKED, TITLES, formats_of
from agentv.extensions.datasets.records import LISTS, SUFFIXES, first_record, json_root
from agentv.extensions.datasets.registry import is_registry
from agentv.extensions.datasets.sample import Findings
from agentv.extensions.promptfoo.converting import configuration_in
from agentv.extensions.promptfoo.translation.configuration import is_promptfoo

PROMPTFOO: Final = "promptfoo"
AGENTV: Final = "agentv"
AGENT_SKILLS: Final = "agent-skills"

FORMATS = (PROMPTFOO, AGENTV, AGENT_SKILLS, *TITLES)
"""What `--from` takes."""

_FROM = f"name its format: --from {', --from '.join(FORMATS[:-1])} or --from {FORMATS[-1]}"


def format_of(source: Path) -> str:
    """The format of a file or directory; what is of no other tool is agentv's.

    Raises:
        UsageError: it may be of several tools, or of none that is known.
        LoadError: it is no JSON, or no text.
        OSError: it cannot be read.
    """
    refuse_javascript(str(source))
    if source.suffix in (".yaml", ".yml") and not source.is_dir():
        return _of_yaml(source)
    if source.is_dir() or source.suffix not in SUFFIXES or _has_sidecar(source):
        return AGENTV
    return _of_records(source)


def _of_yaml(source: Path) -> str:
    if is_promptfoo(source, _yaml_root(source)):
        return PROMPTFOO
    if is_registry(source):
        hint = "convert the samples that it names: agentv convert SAMPLES.jsonl"
        raise UsageError(f"{source} is a registry of OpenAI evals, which contains no samples", hint)
    return AGENTV


def _of_records(source: Path) -> str:
    findings = Findings()
    if source.suffix == ".json":
        root = json_root(str(source), findings)
        if root is not None and holds_skill_tests(root):
            return AGENT_SKILLS
        if is_promptfoo(source, configuration_in(root)):
            return PROMPTFOO
        if isinstance(root, MapNode) and not any(isinstance(root.get(key), ListNode) for key in LISTS):
            return AGENTV
    record = first_record(str(source), findings)
    if record is None and findings.failed:
        raise LoadError(findings.diagnostics)
    return AGENTV if record is None else _of_samples(source, record)


def _of_samples(source: Path, record: MapNode) -> str:
    found = formats_of(record.items)
    if len(found) == 1:
        return found[0]
    if found:
        titles = " or ".join(TITLES[one] for one in found)
        raise UsageError(f"{source} may contain {titles}", _FROM)
    is_case = bool(record.items.keys() & (CHECKED | set(CASE.spelled("id"))))
    if source.suffix == ".json" or (source.suffix == ".jsonl" and not is_case):
        raise UsageError(f"{source} is not recognized: its first entry has {_keys(list(record.items))}", _FROM)
    return AGENTV


def _keys(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:5])
    return f"the keys {shown}{' and more' if len(names) > 5 else ''}" if names else "no keys"


def _has_sidecar(source: Path) -> bool:
    return any(source.with_suffix(suffix).is_file() for suffix in (".yaml", ".yml")) and source.suffix != ".json"


def _yaml_root(source: Path) -> Node | None:
    return read_yaml(str(source.absolute()), source.read_bytes(), Report()).value
