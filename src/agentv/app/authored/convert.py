"""`agentv convert`: detect the tool that a file was made for, and write its cases in another format."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.app.authored.equivalence import meaning
from agentv.app.registries import registries
from agentv.authoring.convert.emit import (
    FoundPaths,
    csv_table,
    jsonl_text,
    python_text,
    with_comments,
    with_inputs,
    yaml_text,
)
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
from agentv.authoring.header import name_of
from agentv.authoring.loading.load import Loaded, LoadRequest, load
from agentv.authoring.loading.suite_builder import TESTS
from agentv.authoring.source.boundary import UNTRUSTED
from agentv.authoring.source.nodes import NOWHERE, ListNode, MapNode, Node, Scalar, plain
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.model.suite.suite import Case, Suite
from agentv.model.values.formatting import plural
from agentv.registry.extensions import DIALECTS
from agentv.user_code.plugins import added, usable


def format_of(source: Path) -> str:
    """Detect the format of a file or directory; files of no other tool have agentv's format.

    Raises:
        UsageError: the format is ambiguous or unknown, or its extension is not installed.
        LoadError: the file is not valid JSON or text.
        OSError: it cannot be read.
    """
    refuse_unreadable(str(source))
    if source.suffix in (".yaml", ".yml") and not source.is_dir():
        return _of_yaml(source)
    if source.is_dir() or source.suffix not in SUFFIXES:
        return AGENTV
    if source.suffix != ".json" and any(source.with_suffix(suffix).is_file() for suffix in (".yaml", ".yml")):
        return AGENTV  # cases of the suite beside them
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


def _of_yaml(source: Path) -> str:
    data = source.read_bytes()
    root = read_yaml(str(source.absolute()), data, Report()).value if may_be_document(str(source), data) else None
    if root is not None and (claims := by_content(str(source.absolute()), root, data)):
        return _name_of(source, claims)
    for one in usable(DIALECTS, added(DIALECTS)):
        one.refuse(source)
    return AGENTV


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
    """Return the dialect that claims a file.

    Raises:
        UsageError: several dialects claim it, or its extension is not installed.
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


TRUSTS_DATA = "its data rows run code, because it sets 'run: {trust_data: true}': read them before you run it"
_RUN = "run"


def needs_trust(path: Path, process_env: Mapping[str, str], *, allow_outside: bool) -> bool:
    """Whether an eval file is rejected because its data rows would run code. Runs nothing."""
    try:
        request = LoadRequest((str(path),), process_env=process_env, allow_outside=allow_outside, for_run=False)
        load(request, registries())
    except LoadError as error:
        return any(one.code == UNTRUSTED for one in error.diagnostics)
    return False


def with_trust(head: Mapping[str, Node]) -> dict[str, Node]:
    """Return the keys of a suite with `run.trust_data` set."""
    run = head.get(_RUN)
    own = run.items if isinstance(run, MapNode) else {}
    items: dict[str, Node] = {**own, "trust_data": Scalar(True, "true", NOWHERE)}
    return {**head, _RUN: MapNode(items, dict.fromkeys(items, NOWHERE), NOWHERE)}


Format = Literal["yaml", "jsonl", "csv", "python"]

_SHOWN = 5
_LINES = ".jsonl"
_ROWS = ".csv"
_PYTHON = ".eval.py"


class Authored(Struct, frozen=True):
    """A suite as authored: the keys of its header, and its cases from all files.

    Attributes:
        tests: the key of the cases as spelled; `evalcases` has different rules.
    """

    head: Mapping[str, Node]
    cases: list[MapNode] = field(default_factory=list)
    tests: str = "tests"


def convert(
    source: Path, to: Format, out: Path | None, process_env: Mapping[str, str], *, allow_outside: bool = False
) -> tuple[Path, ...]:
    """Write a suite in another format, and return the paths of the written files.

    No file is overwritten, and written files are removed if they differ in meaning from the source. If Python generates
    the cases, it is run.

    Raises:
        LoadError: the source is invalid.
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
        authored = replace(authored, head=with_trust(authored.head))
        before = replace(before, run=replace(before.run, trust_data=True))
    with written(_WRITERS[to](authored, _stem(source, out), out)) as files:
        try:
            with _no_bytecode():  # the file may be removed again, so it must leave nothing behind
                (after,) = load(replace(request, paths=(str(files[0]),)), registries()).suites
        except LoadError as error:
            first = next(one for one in error.diagnostics if one.severity == "error")
            place = f" (line {first.span.line})" if first.span is not None and first.span.line > 0 else ""
            more = sum(one.severity == "error" for one in error.diagnostics) - 1
            others = f", and {more} more" if more else ""
            raise UsageError(
                f"converted to {to}, the suite would be invalid: {first.message}{place}{others}", first.hint
            ) from None
        _refuse_changes(before, after, to)
    return files


def _runs_code(authored: Authored, source: Path, out: Path | None, request: LoadRequest) -> bool:
    """Whether the cases, written as CSV, run code, so that the suite must set `trust_data`."""
    with written(_WRITERS["csv"](authored, _stem(source, out), out)) as files:
        found = needs_trust(files[0], request.process_env, allow_outside=request.allow_outside)
    for path in files:
        path.unlink()
    return found


@contextmanager
def written(texts: Mapping[Path, str]) -> Iterator[tuple[Path, ...]]:
    """Write new files, and remove them if the body of the `with` statement raises.

    Raises:
        UsageError: one of the files exists.
        OSError: a file cannot be written.
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
    """Load a suite; return it with its authored nodes and paths."""
    cases: dict[str, MapNode] = {}  # by id, as a line with a diagnostic is read twice
    heads: list[MapNode] = []
    paths = FoundPaths()

    def keep(case: MapNode) -> None:
        key = next((key for key in CASE.spelled("id") if key in case.items), "")
        cases[str(plain(case.items[key])) if key else ""] = case

    watched = replace(request, on_case=keep, on_header=heads.append, on_path=paths.add)
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
    assert isinstance(moved, MapNode)  # noqa: S101  # moving paths keeps the type
    return moved


def _all_nodes(authored: Authored) -> Mapping[str, Node]:
    return {**authored.head, authored.tests: ListNode(list(authored.cases), NOWHERE)}


def _yaml(authored: Authored, stem: Path, out: Path | None) -> dict[Path, str]:
    return {out or stem.with_name(f"{stem.name}.eval.yaml"): yaml_text(_all_nodes(authored))}


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
    if table.unsupported:
        lines = [f"case '{case}': '{key}' has no form in a row" for case, key in table.unsupported]
        count = len({case for case, _ in table.unsupported})
        raise UsageError(f"{plural(count, 'case')} cannot be written as rows; nothing was written", "\n  ".join(lines))
    return {path: table.text, path.with_suffix(".yaml"): yaml_text(table.head)}


def _python(authored: Authored, stem: Path, out: Path | None) -> dict[Path, str]:
    path = out or stem.with_name(f"{stem.name}{_PYTHON}")
    if not path.name.endswith(_PYTHON):
        raise UsageError(f"{path} must end in {_PYTHON}")
    return {path: python_text(_all_nodes(authored))}


_WRITERS: Mapping[Format, Callable[[Authored, Path, Path | None], dict[Path, str]]] = {
    "yaml": _yaml,
    "jsonl": _jsonl,
    "csv": _csv,
    "python": _python,
}


def _stem(source: Path, out: Path | None) -> Path:
    return source.with_name(source.name.removesuffix(source.suffix).removesuffix(".eval")) if out is None else out


@contextmanager
def _no_bytecode() -> Iterator[None]:
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _refuse_changes(before: Suite, after: Suite, to: Format) -> None:
    if to == "csv":
        after = replace(after, cases=tuple(_without_added(case, before) for case in after.cases))
    (head, cases), (other_head, others) = meaning(before), meaning(after)
    changed = [name for name in {**cases, **others} if cases.get(name) != others.get(name)]
    if changed:
        shown = ", ".join(changed[:_SHOWN]) + (", …" if len(changed) > _SHOWN else "")
        count = f"{len(changed)} cases" if len(changed) > 1 else "1 case"
        raise UsageError(f"{count} would change meaning in {to}: {shown}")
    if head != other_head:
        raise UsageError(f"the suite's keys would change meaning in {to}")


def _without_added(case: Case, before: Suite) -> Case:
    """Return a case without the variable that CSV adds for its input."""
    own = next((one.vars for one in before.cases if one.id == case.id), {})
    return replace(case, vars={key: value for key, value in case.vars.items() if key in own})


class ConvertedDocument(Struct, frozen=True):
    """The result of converting a document.

    Attributes:
        path: the eval file that was written.
        diagnostics: warnings and hints about the document.
        trusts: its data rows run code, and the eval file sets `trust_data` to allow this.
    """

    path: Path
    diagnostics: tuple[Diagnostic, ...]
    trusts: bool = False


def convert_document(
    source: Path, dialect: str, out: Path | None, process_env: Mapping[str, str], *, allow_outside: bool = False
) -> ConvertedDocument:
    """Write a document of a dialect as an eval file. Functions that return its cases are called.

    Raises:
        LoadError: the document is invalid, or something in it has no equivalent.
        UsageError: the output file exists, or would have another meaning.
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
    items = with_trust(items) if trusts else items
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
    """Return the meanings of suites, ignoring `trust_data` and whether they are exams."""
    suites = (replace(one, run=replace(one.run, trust_data=None), exam=None) for one in loaded.suites)
    return [meaning(one) for one in suites]


def _name_for(source: Path) -> str:
    stem = source.stem.removesuffix("config") if source.stem.endswith("fooconfig") else source.stem
    return f"{stem.removesuffix('.eval')}.eval.yaml"
