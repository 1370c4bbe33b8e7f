"""`agentv convert`: the same cases in another format (SPEC section 2)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from msgspec import structs

from agentv.app.authored.equivalence import meaning
from agentv.app.registries import registries
from agentv.authoring.convert.emit import FoundPaths, csv_table, jsonl_text, python_text, with_inputs, yaml_text
from agentv.authoring.fields.spellings import CASE
from agentv.authoring.header import name_of
from agentv.authoring.loading.load import LoadRequest, load
from agentv.authoring.loading.suite_builder import TESTS
from agentv.authoring.source.boundary import UNTRUSTED
from agentv.authoring.source.nodes import NOWHERE, ListNode, MapNode, Node, Scalar, plain
from agentv.errors import LoadError, UsageError
from agentv.model.suite.suite import Case, Suite
from agentv.model.values.formatting import plural

TRUSTS_DATA = "its data rows run code, because it sets 'run: {trust_data: true}': read them before you run it"
_RUN = "run"


def needs_trust(path: Path, process_env: Mapping[str, str], *, allow_outside: bool) -> bool:
    """Whether an eval file is refused because of its rows of data. Runs nothing."""
    try:
        request = LoadRequest((str(path),), process_env=process_env, allow_outside=allow_outside, for_run=False)
        load(request, registries())
    except LoadError as error:
        return any(one.code == UNTRUSTED for one in error.diagnostics)
    return False


def trusting(head: Mapping[str, Node]) -> dict[str, Node]:
    """The keys of a suite that trusts its data."""
    run = head.get(_RUN)
    own = run.items if isinstance(run, MapNode) else {}
    items: dict[str, Node] = {**own, "trust_data": Scalar(True, "true", NOWHERE)}
    return {**head, _RUN: MapNode(items, dict.fromkeys(items, NOWHERE), NOWHERE)}


Format = Literal["yaml", "jsonl", "csv", "python"]

_SHOWN = 5
_LINES = ".jsonl"
_ROWS = ".csv"
_PYTHON = ".eval.py"


@dataclass(frozen=True, slots=True)
class Authored:
    """A suite as authored: the keys of its header, and its cases from all files.

    Attributes:
        tests: spelling of the key of the cases; `evalcases` has its own rule.
    """

    head: Mapping[str, Node]
    cases: list[MapNode] = field(default_factory=list)
    tests: str = "tests"


def convert(
    source: Path, to: Format, out: Path | None, process_env: Mapping[str, str], *, allow_outside: bool = False
) -> tuple[Path, ...]:
    """Write a suite in another format; the files that were written.

    No file is overwritten, and nothing remains that differs in meaning from the source. If Python generates the cases,
    it is run.

    Raises:
        LoadError: the source is wrong.
        UsageError: an output file exists, or the other format cannot represent the source.
        OSError: a file cannot be written.
    """
    request = LoadRequest(
        (str(source),), process_env=process_env, makes=True, allow_outside=allow_outside, for_run=False
    )
    before, authored, paths = _read(source, request)
    directory = (out or source).absolute().parent
    head, cases = (authored.head, authored.cases) if to == "csv" else with_inputs(authored.head, authored.cases)
    authored = replace(
        authored,
        head={key: paths.moved(node, directory) for key, node in head.items()},
        cases=[_moved(case, paths, directory) for case in cases],
    )
    if to == "csv" and _runs_code(authored, source, out, request):
        authored = replace(authored, head=trusting(authored.head))
        before = structs.replace(before, run=structs.replace(before.run, trust_data=True))
    with written(_WRITERS[to](authored, _stem(source, out), out)) as files:
        after = _loaded_again(structs.replace(request, paths=(str(files[0]),)), to)
        _refuse_changes(before, after, to)
    return files


def _runs_code(authored: Authored, source: Path, out: Path | None, request: LoadRequest) -> bool:
    """Whether the cases run code, which rows of data must not without a word of the suite's."""
    with written(_WRITERS["csv"](authored, _stem(source, out), out)) as files:
        found = needs_trust(files[0], request.process_env, allow_outside=request.allow_outside)
    for path in files:
        path.unlink()
    return found


@contextmanager
def written(texts: Mapping[Path, str]) -> Iterator[tuple[Path, ...]]:
    """New files, which are taken away again where what is done with them fails.

    Raises:
        UsageError: one of them is there already.
        OSError: one cannot be written.
    """
    existing = [str(path) for path in texts if path.exists()]
    if existing:
        names = " and ".join(existing)
        raise UsageError(f"{names} would be overwritten", "choose another file with --out, or move the existing one")
    with ExitStack() as undo:
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as file:
                undo.callback(path.unlink)
                file.write(text)
        yield tuple(texts)
        undo.pop_all()


def _read(source: Path, request: LoadRequest) -> tuple[Suite, Authored, FoundPaths]:
    """The suite, and how it is written."""
    cases: dict[str, MapNode] = {}  # by their ids: a line that is remarked on is read twice
    heads: list[MapNode] = []
    paths = FoundPaths()

    def keep(case: MapNode) -> None:
        key = next((key for key in CASE.spelled("id") if key in case.items), "")
        cases[str(plain(case.items[key])) if key else ""] = case

    watched = structs.replace(request, on_case=keep, on_header=heads.append, on_path=paths.add)
    (suite,) = load(watched, registries()).suites
    items = dict(heads[-1].items) if heads else {}
    tests = next((key for key in items if key in TESTS), "tests")
    items.pop(tests, None)
    if not items.keys() & {"name", "dataset", "suite"}:
        name = name_of(str(source))
        items = {"name": Scalar(name, name, NOWHERE), **items}
    return suite, Authored(items, list(cases.values()), tests), paths


def _moved(case: MapNode, paths: FoundPaths, directory: Path) -> MapNode:
    moved = paths.moved(case, directory)
    assert isinstance(moved, MapNode)  # noqa: S101  # as it was
    return moved


def _whole(authored: Authored) -> Mapping[str, Node]:
    return {**authored.head, authored.tests: ListNode(list(authored.cases), NOWHERE)}


def _yaml(authored: Authored, stem: Path, out: Path | None) -> dict[Path, str]:
    return {out or stem.with_name(f"{stem.name}.eval.yaml"): yaml_text(_whole(authored))}


def _jsonl(authored: Authored, stem: Path, out: Path | None) -> dict[Path, str]:
    path = out or stem.with_name(f"{stem.name}{_LINES}")
    if path.suffix != _LINES:
        raise UsageError(f"{path} must end in {_LINES}")
    return {path: jsonl_text(authored.cases), path.with_suffix(".yaml"): yaml_text(authored.head)}


def _csv(authored: Authored, stem: Path, out: Path | None) -> dict[Path, str]:
    path = out or stem.with_name(f"{stem.name}{_ROWS}")
    if path.suffix != _ROWS:
        raise UsageError(f"{path} must end in {_ROWS}")
    table = csv_table(authored.head, authored.cases)
    if table.unsaid:
        lines = [f"case '{one.case}': {one.key}: {one.reason}" for one in table.unsaid]
        count = len({one.case for one in table.unsaid})
        raise UsageError(f"{plural(count, 'case')} cannot be written as rows; nothing was written", "\n  ".join(lines))
    return {path: table.text, path.with_suffix(".yaml"): yaml_text(table.head)}


def _python(authored: Authored, stem: Path, out: Path | None) -> dict[Path, str]:
    path = out or stem.with_name(f"{stem.name}{_PYTHON}")
    if not path.name.endswith(_PYTHON):
        raise UsageError(f"{path} must end in {_PYTHON}")
    return {path: python_text(_whole(authored))}


_WRITERS: Mapping[Format, Callable[[Authored, Path, Path | None], dict[Path, str]]] = {
    "yaml": _yaml,
    "jsonl": _jsonl,
    "csv": _csv,
    "python": _python,
}


def _stem(source: Path, out: Path | None) -> Path:
    return source.with_name(source.name.removesuffix(source.suffix).removesuffix(".eval")) if out is None else out


def _loaded_again(request: LoadRequest, to: Format) -> Suite:
    try:
        with _no_bytecode():  # the file may be refused, and must leave nothing behind
            (suite,) = load(request, registries()).suites
    except LoadError as error:
        first = next(one for one in error.diagnostics if one.severity == "error")
        place = f" (line {first.span.line})" if first.span is not None and first.span.line > 0 else ""
        more = sum(one.severity == "error" for one in error.diagnostics) - 1
        others = f", and {more} more" if more else ""
        raise UsageError(
            f"converted to {to}, the suite would be invalid: {first.message}{place}{others}", first.hint
        ) from None
    return suite


@contextmanager
def _no_bytecode() -> Iterator[None]:
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _refuse_changes(before: Suite, after: Suite, to: Format) -> None:
    if to == "csv":
        after = structs.replace(after, cases=tuple(_without_added(case, before) for case in after.cases))
    (head, cases), (other_head, others) = meaning(before), meaning(after)
    changed = [name for name in {**cases, **others} if cases.get(name) != others.get(name)]
    if changed:
        shown = ", ".join(changed[:_SHOWN]) + (", …" if len(changed) > _SHOWN else "")
        count = f"{len(changed)} cases" if len(changed) > 1 else "1 case"
        raise UsageError(f"{count} would change meaning in {to}: {shown}")
    if head != other_head:
        raise UsageError(f"the suite's keys would change meaning in {to}")


def _without_added(case: Case, before: Suite) -> Case:
    """The case without the variable that holds its input, which was not there before."""
    own = next((one.vars for one in before.cases if one.id == case.id), {})
    return structs.replace(case, vars={key: value for key, value in case.vars.items() if key in own})
