"""promptfoo configurations, translated as the reader translates them."""

from pathlib import Path
from typing import Any

from agentv.app.registries import registries
from agentv.authoring.dialects.recognition import Surroundings
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.loading.suite_builder import SuiteContext
from agentv.authoring.source.nodes import plain
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import Diagnostic
from agentv.extensions.promptfoo.dialect import PROMPTFOO


def translated(path: Path, *, calls: bool = True) -> tuple[dict[str, Any], tuple[Diagnostic, ...]]:
    """Return a configuration as an eval file, and the diagnostics."""
    report = Report(hints=True)
    reading = SuiteContext.of(str(path), LoadRequest(()), registries(), report).reading
    root = read_yaml(str(path), path.read_bytes(), report).value
    made = None if root is None else PROMPTFOO.translate(str(path), root, reading, Surroundings(calls, agents=bool))
    return {} if made is None else plain(made.root), report.diagnostics


def translated_text(text: str, directory: Path) -> tuple[dict[str, Any], list[str]]:
    """Write a configuration to a directory and translate it; return only the messages of the diagnostics."""
    path = directory / "promptfooconfig.yaml"
    path.write_text(text)
    document, found = translated(path)
    return document, [one.message for one in found]
