"""One eval file as a Suite (SPEC sections 2 to 4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from agentv.model.assertion import AssertionEntry
from agentv.model.span import Span
from agentv.model.suite import Case, Cases, Suite, TargetSpec
from agentv.model.values import EMPTY, Json
from agentv.registry.table import Registry
from agentv.registry.types import AssertionType, CustomTypes, Provider
from agentv.spec.assertions import AssertionReader, judges, nested
from agentv.spec.cases import CaseDefaults, CaseReader
from agentv.spec.config import Config, over, read_config, read_run
from agentv.spec.decode import INVALID, shape_of
from agentv.spec.environment import dotenv_of, merged, read_dotenv
from agentv.spec.files import DiskReader, Places, repository_root, shown
from agentv.spec.ids import IdTable
from agentv.spec.jsonl import JsonlCases
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, is_empty, kind_of, node_of, plain, span_of
from agentv.spec.reading import GIT_URL, Reading
from agentv.spec.report import Report
from agentv.spec.schema import AuthoredSuite
from agentv.spec.spellings import DEFAULT_TEST, SUITE, translate
from agentv.spec.targets import JUDGE_PASTE, PASTE, TargetBook, open_book, read_target
from agentv.spec.yaml import Sink, read_yaml
from agentv.templating import Scope, has_placeholder

TESTS = frozenset({"tests", *(older for older, key in SUITE.older.items() if key == "tests")})
_TESTS_LINE = re.compile(
    rb"^(?:" + b"|".join(key.encode() for key in sorted(TESTS)) + rb"):[ \t]*(?:#.*)?\r?$", re.MULTILINE
)
_OTHER_LINE = re.compile(rb"^[^\s#-]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Registries:
    """What names mean: assertion types, providers, and the custom types of a directory."""

    assertions: Registry[AssertionType]
    providers: Registry[Provider]
    custom: CustomTypes


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What to load, and what the command line says about it.

    Attributes:
        targets, judge: names or `provider:rest` strings that win over the files'.
        variables: win over `vars` of every case.
        process_env: the environment of the process; wins over `env:` and `.env`.
        env_file: a `.env` file to read instead of those found above the eval file.
        documents: what eval files would hold, as plain data; their paths begin in the working directory.
        given_target, given_judge: made in Python; they win over all others.
        for_run: False for `validate`: no target is needed, and an unset environment variable is a warning.
    """

    paths: tuple[str, ...]
    targets: tuple[str, ...] = ()
    judge: str | None = None
    variables: Mapping[str, Json] = field(default_factory=dict)
    process_env: Mapping[str, str] = field(default_factory=dict)
    env_file: str | None = None
    documents: tuple[Mapping[str, Json], ...] = ()
    given_target: TargetSpec | Mapping[str, Json] | None = None
    given_judge: TargetSpec | Mapping[str, Json] | None = None
    for_run: bool = True


class ManyCases:
    """Cases out of several sources, in their order."""

    def __init__(self, parts: list[list[Case] | JsonlCases]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    def __iter__(self) -> Iterator[Case]:
        return chain.from_iterable(self._parts)


class SuiteReader:
    """Reads one eval file. What is wrong goes to the report; the suite is None then."""

    def __init__(self, path: str, request: LoadRequest, registries: Registries, report: Report) -> None:
        self.path = path
        self.request = request
        self._registries = registries
        self._report = report
        self._reader = DiskReader()
        directory = str(Path(path).parent)
        self._places = Places(directory, repository_root(directory))
        self._reading = Reading(report, self._reader, self._places, None, self._entries, request.for_run)
        self._parts: list[list[Case] | JsonlCases] = []
        self._ids = IdTable()
        self._judging = _Judging()
        self._suite: Suite | None = None
        self._cases: CaseReader | None = None
        self._assertions: AssertionReader | None = None
        self._book: TargetBook | None = None
        self._dotenv: Mapping[str, str] = {}
        self._env: Mapping[str, str] = {}
        self._placeholders = True

    def read(self) -> Suite | None:
        """The suite, or None."""
        data = self._bytes(self.path)
        if data is None:
            return None
        if self.path.endswith(".jsonl"):
            return self._jsonl_suite()
        if not data.strip():
            self._report.error("empty-file", Span(self.path, 1, 1, 1, 2), "this file is empty")
            return None
        root = self._read_root(data)
        if root is None:
            if not self._report.failed:
                self._report.error("empty-file", Span(self.path, 1, 1, 1, 2), "this file holds nothing but comments")
            return None
        if not isinstance(root, MapNode):
            message = f"an eval file is a mapping with 'tests', found {kind_of(root)}"
            self._report.error("bad-eval-file", root, message)
            return None
        if self._cases is None:
            self._begin(root)
        tests = next((root.items[key] for key in root.items if key in TESTS or key == "tests"), None)
        if tests is None:
            self._report.error("missing-key", root, "an eval file needs 'tests'")
        elif not self._parts or not isinstance(tests, ListNode) or tests.items:
            self._tests(tests)
        return self._finished(tests or root)

    def entries_of(self, node: Node) -> tuple[AssertionEntry, ...]:
        """The assertions of a list that stands in no file, read as this file's would be."""
        self._placeholders = False
        self._begin(MapNode({}, {}, node.at))
        return self._entries(node, self._reading)

    def _read_root(self, data: bytes) -> Node | None:
        line = _TESTS_LINE.search(data)
        last = line is not None and not _OTHER_LINE.search(data, line.end())
        self._placeholders = b"{{" in data or b"{%" in data
        return read_yaml(self.path, data, self._report, stream=(TESTS, self._stream) if last else None)

    def _stream(self, head: MapNode) -> Sink | None:
        self._begin(head)
        self._parts.append([])
        return self._test

    def read_document(self, document: Mapping[str, Json]) -> Suite | None:
        """The suite that a mapping holds, which a program made."""
        root = node_of(document, Span(self.path, 1, 1, 1, 2))
        if not isinstance(root, MapNode) or "tests" not in root.items:
            self._report.error("missing-key", root, "a suite needs 'tests'")
            return None
        self._begin(root)
        self._tests(root.items["tests"])
        suite = self._finished(root)
        return suite and replace(suite, path="")

    def _jsonl_suite(self) -> Suite | None:
        self._placeholders = True
        sidecar = next((p for s in (".yaml", ".yml") if (p := Path(self.path).with_suffix(s)).is_file()), None)
        top = Span(self.path, 1, 1, 1, 2)
        head = MapNode({}, {}, top)
        if sidecar is not None:
            data = self._bytes(str(sidecar))
            root = read_yaml(str(sidecar), data, self._report) if data else None
            if root is not None and not isinstance(root, MapNode):
                self._report.error("bad-eval-file", root, f"a sidecar is a mapping, found {kind_of(root)}")
            elif isinstance(root, MapNode):
                head = root
                if any(key in TESTS for key in root.items):
                    key = next(key for key in root.items if key in TESTS)
                    message = f"the cases stand in {Path(self.path).name}; its sidecar takes no '{key}'"
                    self._report.error("bad-eval-file", root.keys[key], message)
        self._begin(head)
        self._jsonl(self.path)
        return self._finished(Scalar(None, "", top))

    # -- the head of the file ------------------------------------------------------------------------------------

    def _begin(self, root: MapNode) -> None:
        """Everything but the cases."""
        reading = self._reading
        env_node = root.get("env")
        suite_env = self._suite_env(env_node) if env_node is not None else {}
        self._dotenv = self._read_dotenv()
        env = merged(self.request.process_env, suite_env, self._dotenv)
        scope = Scope(self.request.variables, env)
        self._env = env
        self._book = open_book(self._places.suite, self._registries.providers, reading.within(scope))
        self._reading = reading = reading.within(scope if self._placeholders else None)
        config = read_config(self._places.suite, reading.within(scope))
        discovered = self._registries.custom(self._places.suite, self._places.root)
        for file, fault in discovered.faults:
            add = self._report.warning if fault.warning else self._report.error
            add(fault.code, Span(file, 1, 1, 1, 2), fault.message, hint=fault.hint)
        self._assertions = AssertionReader(self._registries.assertions, discovered)
        self._suite = self._head(root, config, env, reading)

    def _suite_env(self, node: Node) -> dict[str, str]:
        if not isinstance(node, MapNode):
            self._report.error("bad-value", node, f"'env' must be a mapping, found {kind_of(node)}")
            return {}
        found = {}
        for key, item in node.items.items():
            if isinstance(item, Scalar) and item.value is not None:
                found[key] = item.value if isinstance(item.value, str) else item.text
            else:
                self._report.error("bad-value", item, f"'{key}' must be text, found {kind_of(item)}")
        return found

    def _read_dotenv(self) -> Mapping[str, str]:
        if self.request.env_file is not None:
            return read_dotenv(self.request.env_file, self._reader, self._report)
        return dotenv_of(self._places.suite, self._places.root, self._reader, self._report)

    def _head(self, root: MapNode, config: Config, env: Mapping[str, str], reading: Reading) -> Suite:
        items, dataset = _with_name(root)
        translated = translate(items, SUITE, self._report)
        own = {key: node for key, node in translated.items.items() if not key.startswith("run.")}
        authored = shape_of(AuthoredSuite).decode(own, translated.map, reading, "an eval file", known=SUITE.known)
        run_items = {key[4:]: node for key, node in translated.items.items() if key.startswith("run.")}
        book = self._book
        assert book is not None  # noqa: S101  # _begin made it
        if authored is INVALID:
            authored = AuthoredSuite(targets=own.get("targets"), assert_=own.get("assert"), judge=own.get("judge"))
        run = read_run(_joined(authored.run, run_items, translated.map), reading) if authored.run or run_items else None
        defaults = self._defaults(authored, reading, replaces="evalcases" in root.keys)
        self._cases = CaseReader(defaults, self._reader_of_assertions, book, env)
        if authored.assert_ is not None and reading.scope is None:
            self._reader_of_assertions.entries(authored.assert_, reading)  # found wrong even where every case skips it
        metadata = {**authored.metadata, **dataset, **_plain_facts(authored)}
        return Suite(
            name=authored.name or _name_of(self.path),
            cases=(),
            path=self.path,
            description=authored.description,
            targets=tuple(self._targets(authored.targets, config, reading)),
            judge=book.inline(authored.judge, reading) if authored.judge is not None else None,
            forced_judge=self._forced_judge(reading),
            default_judge=self._default_judge(config, reading),
            threshold=authored.threshold if authored.threshold is not None else config.threshold,
            tags=_suite_tags(authored.tags),
            run=over(run, config.run) if run is not None else config.run,
            env=env,
            metadata=metadata or EMPTY,
            span=span_of(root.at),
        )

    @property
    def _reader_of_assertions(self) -> AssertionReader:
        assert self._assertions is not None  # noqa: S101  # _begin made it
        return self._assertions

    def _defaults(self, authored: AuthoredSuite, reading: Reading, *, replaces: bool) -> CaseDefaults:
        fixed = dict(self.request.variables)
        base = CaseDefaults(
            assert_=authored.assert_,
            input=None if is_empty(authored.input) else authored.input,
            input_files=None if is_empty(authored.input_files) else authored.input_files,
            vars=fixed or EMPTY,
            fixed=fixed,
            replaces=replaces,
        )
        node = authored.default_test
        if is_empty(node):
            return base
        if not isinstance(node, MapNode):
            self._report.error("bad-value", node, f"'default_test' must be a mapping, found {kind_of(node)}")
            return base
        translated = translate(node, DEFAULT_TEST, self._report)
        for key in translated.items:
            if key not in DEFAULT_TEST.canonical and not key.startswith("x-"):
                reading.unknown_key(key, translated.map, DEFAULT_TEST.known, "'default_test'")
        if not is_empty(translated.items.get("options")):
            at = translated.map.keys["options"]
            self._report.error("not-yet", at, "'options' of 'default_test' is known and not supported yet")
        parts = {key: self._object(translated.items.get(key), key) for key in ("vars", "metadata")}
        return replace(
            base,
            test_assert=translated.items.get("assert"),
            vars={**parts["vars"], **fixed} or EMPTY,
            metadata=parts["metadata"] or EMPTY,
            threshold=self._fraction(translated.items.get("threshold"), reading),
        )

    def _object(self, node: Node | None, key: str) -> dict[str, Json]:
        if is_empty(node):
            return {}
        if not isinstance(node, MapNode):
            self._report.error("bad-value", node, f"'{key}' must be a mapping, found {kind_of(node)}")  # type: ignore[arg-type]
            return {}
        found: dict[str, Json] = plain(node)
        return found

    def _fraction(self, node: Node | None, reading: Reading) -> float | None:
        if node is None:
            return None
        read = shape_of(AuthoredSuite).rules["threshold"].kind.read(node, reading, "threshold")
        return None if read is INVALID else float(read)

    # -- targets and judges ---------------------------------------------------------------------------------------

    def _targets(self, node: Node | None, config: Config, reading: Reading) -> Iterator[TargetSpec]:
        book = self._book
        assert book is not None  # noqa: S101  # _begin made it
        if self.request.given_target is not None:
            yield from self._given(self.request.given_target, reading)
            return
        if self.request.targets:
            for name in self.request.targets:
                found = self._from_command_line(name, reading)
                if found is not None:
                    yield found
            return
        for item in node.items if isinstance(node, ListNode) else [] if is_empty(node) else [node]:
            found = book.inline(item, reading)  # type: ignore[arg-type]  # an empty node gives no item
            if found is not None:
                yield found
        if is_empty(node):
            fallback = book.default_target or (
                Scalar(config.target, config.target, config.nodes["target"].at) if config.target else None
            )
            found = book.resolve(fallback.text, fallback, reading) if fallback else None
            if found is not None:
                yield found

    def _given(self, given: TargetSpec | Mapping[str, Json], reading: Reading) -> Iterator[TargetSpec]:
        if isinstance(given, TargetSpec):
            yield given
            return
        node = node_of(given, Span(self.path, 1, 1, 1, 2))
        assert isinstance(node, MapNode)  # noqa: S101  # it was made of a mapping
        found = read_target(node, self._registries.providers, reading.within(None))
        if found is not None:
            yield found

    def _forced_judge(self, reading: Reading) -> TargetSpec | None:
        given = self.request.given_judge
        if given is not None:
            return next(self._given(given, reading), None)
        return self._from_command_line(self.request.judge, reading)

    def _from_command_line(self, name: str | None, reading: Reading) -> TargetSpec | None:
        if name is None or self._book is None:
            return None
        here = replace(reading, places=Places(str(Path.cwd()), self._places.root, alone=True), scope=None)
        return self._book.resolve(name, None, here)

    def _default_judge(self, config: Config, reading: Reading) -> TargetSpec | None:
        book = self._book
        assert book is not None  # noqa: S101  # _begin made it
        if book.default_judge is not None:
            return book.resolve(book.default_judge.text, book.default_judge, reading)
        return book.resolve(config.judge, config.nodes["judge"], reading) if config.judge else None

    def _entries(self, node: Node, reading: Reading) -> tuple[AssertionEntry, ...]:
        return self._reader_of_assertions.entries(node, reading)

    # -- the cases ------------------------------------------------------------------------------------------------

    def _tests(self, node: Node) -> None:
        if isinstance(node, ListNode):
            self._parts.append([])
            for item in node.items:
                self._test(item)
        elif isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            self._elsewhere(node)
        else:
            self._report.error(
                "bad-value", node, f"'tests' must be a list of cases or where they are, found {kind_of(node)}"
            )

    def _test(self, node: Node) -> None:
        if isinstance(node, Scalar) and isinstance(node.value, str):
            self._elsewhere(node)
            return
        assert self._cases is not None  # noqa: S101  # _begin made it
        self._keep(self._cases.read(node, self._reading))

    def _keep(self, case: Case | None) -> None:
        if case is None:
            return
        self._register(case)
        if not self._parts or not isinstance(self._parts[-1], list):
            self._parts.append([])
        self._parts[-1].append(case)  # type: ignore[union-attr]  # a list, as the line above sees to

    def _register(self, case: Case) -> None:
        if self._ids.seen(case.id):
            first = next((one for one in ManyCases(self._parts) if one.id == case.id), None)
            if first is not None and first.span is not None:
                where = f"{shown(first.span.file)}:{first.span.line}"
                self._report.error("duplicate-id", case.span, f"two cases have the id '{case.id}'; first at {where}")
        for entry in case.assertions:
            self._judging.look(entry, case)

    def _elsewhere(self, node: Scalar) -> None:
        """Cases in other files: a path or a glob of YAML and JSONL."""
        written = node.text.strip()
        for pattern, what in _NOT_YET.items():
            if re.search(pattern, written):
                self._report.error("not-yet", node, f"{what} are known and not supported yet")
                return
        for path in self._matching(node, written.removeprefix("file://")):
            if Path(path).is_dir():
                self._report.error("not-yet", node, "a directory of cases is known and not supported yet")
            elif path.endswith(".jsonl"):
                self._jsonl(path)
            else:
                self._yaml_cases(path, node)

    def _matching(self, node: Scalar, written: str) -> list[str]:
        if not any(letter in written for letter in "*?["):
            found = self._reading.find(node, "file")
            return [found] if found else []
        base = self._places.root if written.startswith("/") else str(Path(span_of(node.at).file).parent)
        found_all = sorted(str(path) for path in Path(base).glob(written.lstrip("/")))
        if not found_all:
            self._report.error("missing-file", node, f"no file matches '{written}' in {shown(base)}")
        return found_all

    def _yaml_cases(self, path: str, node: Scalar) -> None:
        text = self._reading.text_of(path, node)
        root = read_yaml(path, text.encode(), self._report) if text is not None else None
        if text is None or (root is None and text.strip()):
            return
        if is_empty(root) or isinstance(root, Scalar):
            self._report.error("no-tests", node, f"'{node.text}' holds no case")
            return
        scope = Scope(self.request.variables, self._env) if has_placeholder(text) else self._reading.scope
        assert self._cases is not None  # noqa: S101  # _begin made it
        for item in root.items if isinstance(root, ListNode) else [root]:
            self._keep(self._cases.read(item, self._reading.within(scope)))  # type: ignore[arg-type]

    def _jsonl(self, path: str) -> None:
        reader = self._cases
        assert reader is not None  # noqa: S101  # _begin made it
        reading = self._reading.within(Scope(self.request.variables, self._env))

        def read_case(node: Node, report: Report, default_id: str) -> Case | None:
            del default_id
            return reader.read(node, replace(reading, report=report))

        cases = JsonlCases(path, read_case)
        self._bytes(path)
        self._parts.append(cases)
        for case in cases.check(self._report):
            self._register(case)
        if not len(cases):
            self._report.error("no-tests", Span(path, 1, 1, 1, 2), "this file holds no case")

    def _bytes(self, path: str) -> bytes | None:
        try:
            return self._reader.read(path)
        except OSError as error:
            self._report.error("missing-file", Span(path, 1, 1, 1, 2), f"cannot read {shown(path)}: {error.strerror}")
            return None

    # -- the end --------------------------------------------------------------------------------------------------

    def _finished(self, tests: Node) -> Suite | None:
        suite, book = self._suite, self._book
        if suite is None or book is None:
            return None
        cases = ManyCases(self._parts)
        if not len(cases) and not self._report.failed:
            self._report.error("no-tests", tests, "this file holds no case")
        if not self.request.for_run:
            book.check()
        self._need_target(suite, cases)
        judges_by_name = self._need_judges(suite)
        if self._report.failed:
            return None
        kept: Cases = self._parts[0] if len(self._parts) == 1 else cases
        return replace(
            suite,
            cases=kept,
            judges=judges_by_name,
            secrets=frozenset(self._reading.secrets),
            files=dict(self._reader.digests),
        )

    def _need_target(self, suite: Suite, cases: Cases) -> None:
        if suite.targets or not self.request.for_run or self._report.failed:
            return
        if all(case.target is not None for case in cases):
            return
        self._report.error(
            "no-target", suite.span, "no target is named, so there is nothing to ask", notes=PASTE.splitlines()
        )

    def _need_judges(self, suite: Suite) -> dict[str, TargetSpec]:
        book, found = self._book, {}
        assert book is not None  # noqa: S101  # _begin made it
        for name, span in self._judging.named.items():
            at = Scalar(name, name, span) if span else None
            spec = book.resolve(name, at, self._reading)
            if spec is not None:
                found[name] = spec
        for target in suite.targets:
            spec = book.resolve(target.judge, None, self._reading) if target.judge else None
            if spec is not None and target.judge:
                found[target.judge] = spec
        chosen = suite.forced_judge or suite.judge or suite.default_judge
        missing = self._judging.unnamed
        if (
            missing is not None
            and chosen is None
            and not all(one.judge for one in suite.targets)
            and self.request.for_run
        ):
            self._report.error(
                "no-judge", missing, "this needs a judge, and none is named", notes=JUDGE_PASTE.splitlines()
            )
        if self._judging.any and chosen is not None and any(one.name == chosen.name for one in suite.targets):
            at_span = self._judging.unnamed or suite.span
            self._report.warning("judge-is-target", at_span, f"'{chosen.name}' judges its own answers")
        return found


@dataclass(slots=True)
class _Judging:
    """Which entries need a judge: the names that they give, and the first place that gives none."""

    named: dict[str, Span | None] = field(default_factory=dict)
    unnamed: Span | None = None
    any: bool = False
    _known: dict[int, AssertionEntry] = field(default_factory=dict)

    def look(self, entry: AssertionEntry, case: Case) -> None:
        """One more entry of a case."""
        for child in nested(entry):
            self.look(child, case)
        if not judges(entry) or nested(entry):
            return
        self.any = True
        name: Any = getattr(entry.assertion, "judge", None)
        if isinstance(name, str):
            self.named.setdefault(name, entry.span)
        elif case.judge is None and self.unnamed is None:
            self.unnamed = entry.span


_NOT_YET = {
    r"\.csv$": "CSV files",
    r"\.py(?::\w+)?$": "cases out of Python",
    r"\.json$": "cases in one JSON file",
    GIT_URL.pattern: "files out of a git host",
}


def _with_name(root: MapNode) -> tuple[MapNode, dict[str, Json]]:
    """`dataset` and `suite` name the suite, or are kept in its metadata where `name` stands too."""
    older = [key for key in ("dataset", "suite") if key in root.items]
    if not older:
        return root, {}
    items, keys = dict(root.items), dict(root.keys)
    kept: dict[str, Json] = {}
    for key in older:
        node, at = items.pop(key), keys.pop(key)
        if "name" in items:
            kept[key] = plain(node)
        else:
            items["name"], keys["name"] = node, at
    return MapNode(items, keys, root.at), kept


def _plain_facts(authored: AuthoredSuite) -> dict[str, Json]:
    facts = {
        "version": authored.version,
        "author": plain(authored.author) if authored.author is not None else None,
        "license": authored.license,
        "requires": plain(authored.requires) if authored.requires is not None else None,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _joined(node: Node | None, more: Mapping[str, Node], at: MapNode) -> Node:
    if not more:
        return node or MapNode({}, {}, at.at)
    own = node if isinstance(node, MapNode) else MapNode({}, {}, at.at)
    keys = {key: at.keys[f"run.{key}"] for key in more}
    return MapNode({**more, **own.items}, {**keys, **own.keys}, own.at)


def _suite_tags(node: Node | None) -> tuple[str, ...]:
    if isinstance(node, ListNode):
        return tuple(item.text for item in node.items if isinstance(item, Scalar))
    if isinstance(node, MapNode):
        return tuple(f"{key}:{plain(item)}" for key, item in node.items.items())
    return (node.text,) if isinstance(node, Scalar) and node.value is not None else ()


def _name_of(path: str) -> str:
    file = Path(path)
    if file.name in {"EVAL.yaml", "EVAL.yml"}:
        return file.parent.name
    name = file.name
    for suffix in (".eval.yaml", ".eval.yml", ".yaml", ".yml", ".jsonl"):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return file.stem


ReadSuite = Callable[[str], Suite | None]
