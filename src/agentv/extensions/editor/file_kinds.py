"""Kinds of authored files that an editor opens; other YAML files are ignored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from agentv.authoring.prompt_library import prompt_file_of
from agentv.authoring.source.files import META, is_exam, template_home

FileKind = Literal["eval", "targets", "config", "template", "exam", "meta"]
"""Those that have a JSON Schema are called as it."""

_YAML = (".yaml", ".yml")
_TARGETS = frozenset({"targets", "providers"})
_CONFIGS = frozenset({"config", "config.local"})
_TESTS = re.compile(r"^(?:tests|evalcases|eval_cases)[ ]*:", re.MULTILINE)
_OF_SUITES = re.compile(
    r"^[ -]*(?:input|input_messages|assert|assertions|criteria|prompts|providers|target)[ ]*:", re.MULTILINE
)


def kind_of(path: str, text: str) -> FileKind | None:
    """The kind of a file by its path, or by its content where its name could be any; None: it is not agentv's."""
    file = Path(path)
    if file.suffix == ".jsonl":
        return "eval" if file.with_suffix(".yaml").is_file() else None
    if file.suffix not in _YAML:
        return None
    if file.parent.name == ".agentv":
        return "targets" if file.stem in _TARGETS else "config" if file.stem in _CONFIGS else None
    return _by_name(file) or ("eval" if _TESTS.search(text) and _OF_SUITES.search(text) else None)


def _by_name(file: Path) -> FileKind | None:
    if template_home(str(file)) is not None:
        return "template"
    if file.stem.endswith(".eval") or file.stem == "EVAL":
        return "eval"
    if is_exam(str(file)):
        return "exam"
    return "meta" if file.name == META and prompt_file_of(file.parent) is not None else None
