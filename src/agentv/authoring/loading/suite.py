"""One eval file as a Suite (SPEC sections 2 to 4)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.authoring.assertions.includes import load_template
from agentv.authoring.cases.datasets import STREAMED, CaseSources
from agentv.authoring.exams.detection import holds_exam, holds_skill_tests, is_exam, may_be_exam, may_test_skill
from agentv.authoring.fields.reading import SHOWN_KEYS, Chain, Reading
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.header.header import Head, HeadReader
from agentv.authoring.source.boundary import ALLOW, OUTSIDE, REASON, OutsideError, boundary_around
from agentv.authoring.source.files import DiskReader, Places, is_file, repository_root, shown
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import ListNode, MapNode, Node, holds_placeholder, kind_of, node_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.spellings import MEANT, SUITE, TEMPLATE
from agentv.authoring.source.yaml import Sink, read_yaml
from agentv.authoring.targets.registry import TargetBook
from agentv.authoring.targets.variables import report_missing
from agentv.errors import Diagnostic
from agentv.model.secrets.redaction import Redactor
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.repository import Checkout, RepositoryFile, Unavailable
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.span import Span
from agentv.model.values.values import EMPTY, Json
from agentv.templating import Scope

if TYPE_CHECKING:
    from agentv.authoring.exams.reader import ReadsExam

__all__ = ["LoadRequest", "Registries", "SuiteReader", "cases_beside"]

TESTS = frozenset(SUITE.spelled("tests"))
_WHOM = frozenset({"target", "judge"})
_NAMED = _WHOM | {"tests"}
_TESTS_LINE = lazy_pattern(
    rb"^(?:" + b"|".join(key.encode() for key in sorted(TESTS)) + rb"):[ \t]*(?:#.*)?\r?$", re.MULTILINE
)
_TESTS_KEY = lazy_pattern(
    rb"""(?:^|[{,]\s*)["']?(?:""" + b"|".join(key.encode() for key in sorted(TESTS)) + rb""")["']?\s*:""", re.MULTILINE
)
_OTHER_LINE = lazy_pattern(rb"^[^\s#-]", re.MULTILINE)


class SuiteReader:
    """Reads one eval file. What is wrong goes to the report; the suite is None then."""

    def __init__(self, path: str, request: LoadRequest, registries: Registries, report: Report) -> None:
        self.path = path
        self.request = request
        self._heads = HeadReader(path, request, registries)
        self._report = report
        directory = _home(path)
        root = repository_root(directory)
        typed = {request.env_file} if request.env_file is not None else set()
        self._boundary = replace(boundary_around(directory, root), is_open=request.allow_outside, typed=typed)
        self._disk = DiskReader(request.edits, self._boundary)
        places = Places(directory, root, told=request.finds, boundary=self._boundary)
        nothing = Scope(EMPTY, {})  # until the environment is read

        def checkout(wanted: RepositoryFile) -> Checkout | Unavailable:
            return registries.checkouts(wanted, request.process_env)

        self._reading = Reading(report, self._disk, places, nothing, strict_env=request.for_run, checkout=checkout)
        if request.for_run and not (request.asks and request.asks_targets):
            self._reading = replace(self._reading, spares=True)
        self._head: Head | None = None
        self._sources: CaseSources | None = None
        self._shared = False
        self._meant: frozenset[str] = frozenset()  # keys that are not really missing: misspelt, or in a broken sidecar

    def read(self) -> Suite | None:
        """The suite, or None."""
        if self.path.endswith(STREAMED):
            return self._streamed_suite()
        return self._python_suite() if self.path.endswith(".py") else self._yaml_suite()

    def _yaml_suite(self) -> Suite | None:
        data = self._bytes(self.path)
        if data is None:
            return None
        errors = self._report.errors
        exam = is_exam(self.path)
        root = self._read_root(data, whole=exam or may_be_exam(data))
        if root is None:
            if self._report.errors == errors:
                what = "contains only comments" if data.strip() else "is empty"
                self._report.error("empty-file", self._top, f"this file {what}")
            return None
        if exam or holds_exam(root) or (self.path.endswith(".json") and holds_skill_tests(root)):
            return self._exam_suite(root, data)
        if not isinstance(root, MapNode):
            message = f"an eval file is a mapping with 'tests', found {kind_of(root)}"
            self._report.error("bad-eval-file", root, message)
            return None
        if not self.request.for_run and _looks_like_template(root):
            self.check_template()
            return None
        return self._suite(root)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was found and no comment silences, sorted by place, and without secrets or what lies outside."""
        found, marked = tuple(map(self._boundary.shown, self._report.diagnostics)), self._disk.marked
        if found:
            reading = self._reading if self._head is None else self._head.reading
            redactor = Redactor(reading.environment_secrets() | reading.secrets)
            found = tuple(map(redactor.redact_diagnostic, found)) if redactor else found
        if not marked:
            return found
        from agentv.authoring.source.ignores import without_ignored

        # whether a comment is in vain is known where all remarks are made: not in a run, which needs no hints, nor in a
        # template, on which the eval files that include it are remarked
        own = Path(self.path).with_suffix("")
        alone = self.request.for_run or self._shared
        told_of = [] if alone else [path for path in marked if Path(path).with_suffix("") == own]
        return without_ignored(found, marked, told_of=told_of)

    def read_document(self, document: Mapping[str, Json]) -> Suite | None:
        """The suite that a mapping holds, which a program made."""
        try:
            root = node_of(document, self._top)
        except RecursionError:
            self._report.error("too-deep", self._top, "this mapping is nested too deeply, or contains itself")
            return None
        assert isinstance(root, MapNode)  # noqa: S101  # it was made of a mapping
        self._reading = self._reading.rendering(holds_placeholder(root))
        suite = self._suite(root)
        return suite and replace(suite, path="")

    def entries_of(self, node: Node) -> tuple[AssertionEntry, ...]:
        """The assertions of a list that stands in no file, read as this file's would be."""
        head = self._begin(MapNode({}, {}, node.at))
        return head.assertions.entries(node, head.reading)

    @property
    def files(self) -> Mapping[str, str]:
        """Every file that was read so far, by its absolute path, with its sha256."""
        return self._disk.digests

    @property
    def _top(self) -> Span:
        return Span(self.path, 1, 1, 1, 2)

    @property
    def _makes(self) -> bool:
        return self.request.for_run or self.request.makes

    def _suite(self, root: MapNode) -> Suite | None:
        if self.request.heads is not None:
            self.request.heads(root)
        streamed = self._head is not None
        head = self._head or self._begin(root)
        key = next((key for key in root.items if key in TESTS), None)
        tests = root.items[key] if key is not None else None
        if key not in (None, "tests"):
            self._report.older(str(key), "tests", root.keys[str(key)])
            self._report.spell(root.items[str(key)], str(key), "tests")
        if tests is None and "tests" in self._meant:
            pass  # it is misspelt, which is reported
        elif tests is None:
            hint = "this is a template: include it in an eval file" if _looks_like_template(root) else None
            cases = cases_beside(self.path) if hint is None else None
            hint = f"this is the sidecar of {Path(cases).name}; give that file instead" if cases else hint
            self._report.error("missing-key", root, "an eval file needs 'tests'", hint=hint)
        elif self._sources is not None and not (streamed and isinstance(tests, ListNode) and not tests.items):
            self._sources.take(tests)
        return self._finished(head, tests or root)

    def _begin(self, root: MapNode, *, exam: bool = False) -> Head:
        """Read everything but the cases."""
        head = self._head = self._heads.read(root, self._reading, exam=exam)
        self._meant |= _meant(root)
        self._sources = CaseSources(
            self.path,
            head.cases,
            head.assertions,
            head.reading,
            self._disk,
            for_run=self._makes,
        )
        self._sources.trusted = self.request.trust_data or head.suite.run.trust_data is True
        return head

    def _exam_suite(self, root: Node, data: bytes) -> Suite | None:
        from agentv.authoring.exams.file import ExamReader  # few suites are exams
        from agentv.authoring.exams.skill_files import skill_exam

        self._disk.kept = {self.path: data}
        if self.path.endswith(".json") and holds_skill_tests(root):
            of_skill = skill_exam(root, self.path, self._reading)
            return None if of_skill is None else self._examined(of_skill, root)
        if isinstance(root, MapNode):
            return self._examined(ExamReader(self.path, root, self._reading, self.request), root)
        self._report.error("bad-eval-file", root, f"an exam is a mapping with 'cases', found {kind_of(root)}")
        return None

    def _examined(self, reader: ReadsExam, root: Node) -> Suite | None:
        """The suite that an exam is lowered into; one part of it after the other, since each needs those before."""
        self._reading = reader.reading
        head = self._begin(reader.head(), exam=True)
        self._meant |= reader.meant
        if self._sources is not None:
            self._sources.ask(reader.queries(head))
            for found in reader.cases(head):
                self._sources.keep(found)
        suite = self._finished(head, root)
        kept = {
            path: data for path, data in (self._disk.kept or {}).items() if path != self.request.env_file
        }  # of secrets
        return suite and replace(suite, exam=reader.exam(suite, kept))

    def _read_root(self, data: bytes, *, whole: bool) -> Node | None:
        """The outermost node. The cases are taken as they come by, where nothing else can follow them.

        `whole`: they are not, since what they are is not known before.
        """
        line = None if whole else _TESTS_LINE.search(data)
        last = line is not None and not _OTHER_LINE.search(data, line.end())
        self._reading = self._reading.rendering(b"{{" in data or b"{%" in data)
        if self.path.endswith(".json") and may_test_skill(data):
            return self._json_root(data)
        return read_yaml(self.path, data, self._report, stream=(TESTS, self._stream if last else _not_streamed))

    def _json_root(self, data: bytes) -> Node | None:
        """What programs write as JSON may hold escapes that YAML does not know."""
        from agentv.authoring.source.json_text import read_json

        try:
            return read_json(self.path, data.decode("utf-8-sig"), self._report)
        except UnicodeDecodeError:
            return read_yaml(self.path, data, self._report)  # which tells it

    def _stream(self, head: MapNode) -> Sink | None:
        self._begin(head)
        return self._sources.add if self._sources is not None else None

    def _streamed_suite(self) -> Suite | None:
        sidecar = self._sidecar()
        if self.request.heads is not None:
            self.request.heads(sidecar)
        head = self._begin(sidecar)
        if self._sources is not None:
            self._sources.stream(self.path, is_data=self.path.endswith(".csv"))
        return self._finished(head, None)

    def _python_suite(self) -> Suite | None:
        from agentv.authoring.loading.python_suite import read_python_suite  # few suites are written in Python

        def read_made(root: MapNode, report: Report) -> Suite | None:
            made = SuiteReader(self.path, self.request, self._heads.registries, report)
            made._boundary.is_open = True  # the file is a program, which reads what it likes
            made._bytes(self.path)  # so that the run remembers what it was
            made._reading = made._reading.rendering(holds_placeholder(root))
            return made._suite(root)

        if self._bytes(self.path) is None:
            return None
        return read_python_suite(self.path, self._report, read_made, for_run=self._makes)

    def _sidecar(self) -> MapNode:
        """The suite's keys, from the YAML file of the same name beside the cases."""
        nothing = MapNode({}, {}, self._top)
        path = next((str(p) for s in (".yaml", ".yml") if (p := Path(self.path).with_suffix(s)).is_file()), None)
        data = self._bytes(path) if path is not None else None
        if path is None or data is None:
            return nothing
        errors = self._report.errors
        root = read_yaml(path, data, self._report)
        if self._report.errors > errors:
            self._meant = _WHOM
        if root is None:
            return nothing
        if not isinstance(root, MapNode):
            self._report.error("bad-eval-file", root, f"a sidecar is a mapping, found {kind_of(root)}")
            return nothing
        for key in root.items.keys() & TESTS:
            message = f"the cases are in {Path(self.path).name}; its sidecar takes no '{key}'"
            self._report.error("bad-eval-file", root.keys[key], message)
        self._reading = self._reading.rendering(b"{{" in data or b"{%" in data)
        return root

    def check_project(self) -> None:
        """The `targets.yaml` and `config.yaml` that hold for eval files of this directory, each target read."""
        self._shared = True
        self._begin(MapNode({}, {}, self._top)).targets.book.check()

    def project(self) -> tuple[TargetBook, Reading]:
        """The targets that an eval file of this directory can name, and what they are read with."""
        head = self._begin(MapNode({}, {}, self._top))
        return head.targets.book, head.reading

    def check_meta(self) -> None:
        """A prompt's `meta.yaml` that lies beside no exam."""
        self._shared = True
        from agentv.authoring.exams.meta import read_meta  # most eval files are no prompt's

        read_meta(str(Path(self.path).parent), self._reading)

    def check_template(self) -> None:
        """`validate` knows a template when it is given one."""
        self._shared = True
        head = self._begin(MapNode({}, {}, self._top))
        template = load_template(self.path, None, self._reading)
        if template is not None:
            chain = Chain(paths=(self.path,), names=(Path(self.path).name,), alone=True)
            head.assertions.entries(template.entries, replace(head.reading, chain=chain, renders=False))

    def _bytes(self, path: str) -> bytes | None:
        try:
            return self._disk.read(path)
        except OutsideError:
            self._report.error(OUTSIDE, Span(path, 1, 1, 1, 2), f"cannot read {shown(path)}: {REASON}", hint=ALLOW)
        except OSError as error:
            self._report.error("missing-file", Span(path, 1, 1, 1, 2), f"cannot read {shown(path)}: {error.strerror}")
        return None

    def _finished(self, head: Head, tests: Node | None) -> Suite | None:
        sources, suite, book = self._sources, head.suite, head.targets.book
        if sources is None:
            return None
        sources.end()
        head.cases.end(self._report)
        if not head.cases.seen and not self._report.failed:
            self._report.error("no-tests", tests or self._top, "this file contains no cases")
        if not self.request.for_run:
            book.check()
        untargeted = head.cases.untargeted and "target" not in self._meant
        head.targets.need(head.targets_node, suite.span, head.reading, untargeted=untargeted)
        head.cases.zero.close(*head.threshold, self._report)
        needed = self.request.for_run and "judge" not in self._meant
        judging = head.cases.judging
        judges = judging.resolve(suite, book, head.reading, for_run=needed)
        if self.request.for_run and (needed or suite.judge is not None):  # a judge that cannot be read might embed
            judging.need_embedder(suite, judges, head.reading)
        flagged = bool(self.request.targets) or self.request.given_target is not None
        judging.need_rivals(suite, head.reading, for_run=self.request.for_run, flagged=flagged)
        asked = (*self._asked(head), *judging.used(suite, judges))
        if self.request.for_run and not self.request.asks_targets:
            self._report_unset(suite.targets)
        report_missing(asked, head.reading, asks=self.request.for_run and self.request.asks)
        if self._report.failed:
            return None
        return replace(
            suite,
            cases=sources.cases,
            tally=None if sources.asks_judge else sources.tally,
            links=sources.links,
            generators=tuple(sources.generators),
            judges=judges,
            compares=bool(judging.comparing),
            secrets=head.reading.environment_secrets() | self._reading.secrets,
            unsearched=frozenset(self._reading.unsearched),
            files=dict(self._disk.digests),
            graders=head.cases.graders,
        )

    def _report_unset(self, targets: Iterable[TargetSpec]) -> None:
        """What the environment lacks for targets that nobody asks, which is no error."""
        for one in targets:
            for unset in one.unset:
                self._report.add(replace(unset, severity="warning"))

    def _asked(self, head: Head) -> Iterator[TargetSpec]:
        """The systems under test that a run of this suite would ask."""
        if not self.request.asks_targets:
            return
        flagged = self.request.targets or self.request.given_target is not None
        if flagged or head.cases.untargeted:
            yield from head.suite.targets
        if not flagged:
            yield from head.cases.keyless.values()


def _meant(root: MapNode) -> frozenset[str]:
    """Whether a target, a judge or cases are named, if wrongly: their absence is not to be reported, too."""
    unknown = islice((key for key in root.items if key not in SUITE.known and not key.startswith("x-")), SHOWN_KEYS)
    near = {key: nearest(key, SUITE.known) or MEANT.get(key, key) for key in unknown}
    found = {SUITE.older.get(key, key) for key in near.values()} | ({"judge"} & root.items.keys())
    return _NAMED & {"target" if key == "targets" else key for key in found}


def cases_beside(path: str) -> str | None:
    """The JSON Lines file whose sidecar a YAML file is; None where it says itself where its cases are."""
    cases = Path(path).with_suffix(".jsonl")
    if not cases.is_file() or not is_file(path) or _TESTS_KEY.search(Path(path).read_bytes()):
        return None
    return str(cases)


def _looks_like_template(root: MapNode) -> bool:
    keys = {key for key in root.items if not key.startswith("x-")}
    return keys <= TEMPLATE.known and not keys.isdisjoint(TEMPLATE.spelled("assert"))


def _home(path: str) -> str:
    """Where the paths of a file begin: its directory; for a template the directory that holds its `.agentv`."""
    directory = str(Path(path).parent)
    home, inside, _ = f"{directory}{os.sep}".partition(os.path.join(os.sep, ".agentv", "templates", ""))  # noqa: PTH118
    return home if inside else directory


def _not_streamed(_: MapNode) -> None:
    """What begins a list of cases that is read as a whole."""
