"""`agentv convert` of another tool's document: the eval file that its translation is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.authored.convert import trusting, written
from agentv.app.authored.equivalence import meaning
from agentv.app.registries import registries
from agentv.authoring.convert.emit import FoundPaths, with_comments, yaml_text
from agentv.authoring.loading.load import Loaded, LoadRequest, load
from agentv.authoring.source.boundary import UNTRUSTED
from agentv.authoring.source.nodes import MapNode
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import Diagnostic, LoadError, UsageError


class ConvertedDocument(Struct, frozen=True):
    """What came of a document.

    Attributes:
        path: the eval file that was written.
        diagnostics: warnings and hints on the document.
        trusts: its rows of data run code, and the eval file says that they may.
    """

    path: Path
    diagnostics: tuple[Diagnostic, ...]
    trusts: bool = False


def convert_document(
    source: Path, dialect: str, out: Path | None, process_env: Mapping[str, str], *, allow_outside: bool = False
) -> ConvertedDocument:
    """Write a document of a dialect as an eval file. Functions that return its cases are called.

    Raises:
        LoadError: it is wrong, or something in it has no equivalent.
        UsageError: the file exists, or would not mean the same.
        OSError: a file cannot be read or written.
    """
    heads: list[MapNode] = []
    paths = FoundPaths(elsewhere=True)
    request = LoadRequest(
        (str(source),), process_env=process_env, makes=True, allow_outside=allow_outside, dialect=dialect, for_run=False
    )
    trusts = False
    try:
        before = load(replace(request, on_header=heads.append, on_path=paths.add), registries())
    except LoadError as error:
        trusts = all(one.code == UNTRUSTED for one in error.diagnostics if one.severity == "error")
        if not trusts:
            raise
        before = load(replace(request, trust_data=True), registries())
    path = out or source.with_name(_name_for(source))
    moved = paths.moved(heads[-1], path.absolute().parent)
    items = {key: node for key, node in moved.items.items() if key != "exam"} if isinstance(moved, MapNode) else {}
    items = trusting(items) if trusts else items
    original = source.read_bytes()
    root = read_yaml(str(source.absolute()), original, Report()).value
    text = yaml_text(items)
    text = text if root is None else with_comments(text, items, root, original.decode("utf-8-sig"))
    with written({path: text}):
        after = load(replace(request, paths=(str(path),), dialect=None), registries())
        if _meanings(before) != _meanings(after):
            raise UsageError(f"{source} would change its meaning as an eval file, so nothing is written")
    return ConvertedDocument(path, before.diagnostics, trusts)


def _meanings(loaded: Loaded) -> list[Any]:
    """What the suites mean, whether or not they trust their data and are recorded as exams."""
    suites = (replace(one, run=replace(one.run, trust_data=None), exam=None) for one in loaded.suites)
    return [meaning(one) for one in suites]


def _name_for(source: Path) -> str:
    stem = source.stem.removesuffix("config") if source.stem.endswith("fooconfig") else source.stem
    return f"{stem.removesuffix('.eval')}.eval.yaml"
