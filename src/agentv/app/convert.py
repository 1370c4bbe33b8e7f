"""`agentv convert`: the same cases in another format (SPEC section 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from agentv.app.meaning import meaning
from agentv.app.wiring import registries
from agentv.errors import UsageError
from agentv.model.span import Span
from agentv.model.suite import Suite
from agentv.spec.emit import jsonl_text, yaml_text
from agentv.spec.head import name_of
from agentv.spec.load import LoadRequest, load
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, plain
from agentv.spec.report import Report
from agentv.spec.spellings import CASE
from agentv.spec.suite import TESTS
from agentv.spec.yaml import read_yaml

Format = Literal["yaml", "jsonl"]

_SHOWN = 5
_LINES = ".jsonl"


@dataclass(frozen=True, slots=True)
class Authored:
    """A suite as it is written: the keys of its head, and its cases, wherever they stood.

    Attributes:
        tests: how the key of the cases is spelled; `evalcases` has a rule of its own.
    """

    head: Mapping[str, Node]
    cases: list[MapNode] = field(default_factory=list)
    tests: str = "tests"


def convert(source: Path, to: Format, out: Path | None, process_env: Mapping[str, str]) -> tuple[Path, ...]:
    """Write a suite in another format; the files that were written.

    Nothing is overwritten, and nothing is left behind that does not mean what the source means.

    Raises:
        LoadError: the source is wrong.
        UsageError: a file stands in the way, or the other format cannot say what the source says.
        OSError: a file cannot be written.
    """
    written: dict[str, MapNode] = {}  # by their ids: a line that is remarked on is read twice

    def keep(case: MapNode) -> None:
        key = next((key for key in CASE.spelled("id") if key in case.items), "")
        written[str(plain(case.items[key])) if key else ""] = case

    request = LoadRequest((str(source),), process_env=process_env, for_run=False, witness=keep)
    (before,) = load(request, registries()).suites
    authored = replace(_head_of(source), cases=list(written.values()))
    files = _WRITERS[to](authored, _stem(source, out), out)
    _refuse_existing(files)
    with ExitStack() as undo:
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                undo.callback(path.unlink)
                file.write(text)
        first = next(iter(files))
        (after,) = load(replace(request, paths=(str(first),), witness=None), registries()).suites
        _refuse_changes(before, after, to)
        undo.pop_all()
    return tuple(files)


def _head_of(source: Path) -> Authored:
    """The head that stands in the file itself, or in the sidecar of one that holds cases alone."""
    beside = [source.with_suffix(suffix) for suffix in (".yaml", ".yml")] if source.suffix == _LINES else [source]
    path = next((one for one in beside if one.is_file()), None)
    root = read_yaml(str(path), path.read_bytes(), Report()) if path is not None else None
    items = dict(root.items) if isinstance(root, MapNode) else {}
    tests = next((key for key in items if key in TESTS), "tests")
    items.pop(tests, None)
    if not items.keys() & {"name", "dataset", "suite"}:
        name = name_of(str(source))
        items = {"name": Scalar(name, name, _NOWHERE), **items}
    return Authored(items, tests=tests)


def _yaml(authored: Authored, stem: Path, out: Path | None) -> dict[Path, str]:
    tests = ListNode(list(authored.cases), _NOWHERE)
    return {out or stem.with_name(f"{stem.name}.eval.yaml"): yaml_text({**authored.head, authored.tests: tests})}


def _jsonl(authored: Authored, stem: Path, out: Path | None) -> dict[Path, str]:
    path = out or stem.with_name(f"{stem.name}{_LINES}")
    if path.suffix != _LINES:
        raise UsageError(f"{path} must end in {_LINES}")
    return {path: jsonl_text(authored.cases), path.with_suffix(".yaml"): yaml_text(authored.head)}


_WRITERS: Mapping[Format, Callable[[Authored, Path, Path | None], dict[Path, str]]] = {"yaml": _yaml, "jsonl": _jsonl}


def _stem(source: Path, out: Path | None) -> Path:
    return source.with_name(source.name.removesuffix(source.suffix).removesuffix(".eval")) if out is None else out


def _refuse_existing(files: Mapping[Path, str]) -> None:
    standing = [str(path) for path in files if path.exists()]
    if standing:
        names = " and ".join(standing)
        raise UsageError(f"{names} would be overwritten", "name another file with --out, or move it away")


def _refuse_changes(before: Suite, after: Suite, to: Format) -> None:
    (head, cases), (other_head, others) = meaning(before), meaning(after)
    changed = [name for name in {**cases, **others} if cases.get(name) != others.get(name)]
    if changed:
        shown = ", ".join(changed[:_SHOWN]) + (", …" if len(changed) > _SHOWN else "")
        raise UsageError(f"{len(changed)} cases would not mean the same as {to}: {shown}")
    if head != other_head:
        raise UsageError(f"the keys of the suite would not mean the same as {to}")


_NOWHERE = Span("", 0, 0, 0, 0)
