"""Reads one eval file as a Suite (SPEC sections 2 to 4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from agentv.authoring.cases.datasets import STREAMED
from agentv.authoring.dialects.recognition import (
    AGENT_SKILLS,
    OWN,
    Claim,
    DocumentDialect,
    Surroundings,
    by_content,
    dialect,
    may_be_document,
    may_be_own,
    of_json,
    of_stream,
)
from agentv.authoring.fields.reading import Chain, Reading
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.fields.spellings import TEMPLATE
from agentv.authoring.header import environment, read_header
from agentv.authoring.loading.suite_builder import TESTS, SuiteBuilder, SuiteContext, cases_beside
from agentv.authoring.source.nodes import ListNode, MapNode, Node, holds_placeholder, node_of
from agentv.authoring.source.report import Report, Result
from agentv.authoring.source.yaml import read_yaml
from agentv.authoring.targets.registry import TargetRegistry
from agentv.errors import Diagnostic
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Suite
from agentv.model.values.values import EMPTY, Json, lazy_pattern
from agentv.templating import Scope

_TARGET_KEYS = frozenset({"target", "judge"})
_EXPECTED_KEYS = _TARGET_KEYS | {"tests"}
_CONSEQUENTIAL_CODES = frozenset(
    {
        *("checks-nothing", "missing-input", "no-judge", "no-target", "no-tests", "two-spellings"),
        *("unknown-key", "unknown-target"),
    }
)
"""Codes of errors that an untranslated part of the file may cause elsewhere."""

_TESTS_LINE = lazy_pattern(
    rb"^(?:" + b"|".join(key.encode() for key in sorted(TESTS)) + rb"):[ \t]*(?:#.*)?\r?$", re.MULTILINE
)
_OTHER_LINE = lazy_pattern(rb"^[^\s#-]", re.MULTILINE)


class SuiteReader:
    """Reads one eval file. Diagnostics go to the report; the suite is None if there are errors."""

    def __init__(self, path: str, request: LoadRequest, registries: Registries, report: Report) -> None:
        self.path = path
        self._context = SuiteContext.of(path, request, registries, report)
        self._reading = self._context.reading
        self._report = report
        self._builder: SuiteBuilder | None = None
        self._shared = False
        self.dialect: str | None = None  # its title, for another tool's file
        self._not_missing: frozenset[str] = frozenset()  # misspelt, or in an invalid sidecar

    def read(self) -> Suite | None:
        """The suite, or None after reporting errors."""
        if self.path.endswith(STREAMED):
            samples = of_stream(self.path)  # another tool's
            if samples is not None:
                self._report.add(samples)
                return None
            if _has_its_own_cases(self._context, "this file holds the cases itself"):
                return None
            sidecar = self._sidecar()
            if self._context.request.on_header is not None:
                self._context.request.on_header(sidecar)
            builder = self._begin(sidecar)
            builder.sources.stream(self.path, is_data=not self.path.endswith(".jsonl"))
            return builder.build(None, self._not_missing)
        return self._python_suite() if self.path.endswith(".py") else self._yaml_suite()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Diagnostics without ignored ones, sorted by position, and without secrets or content from outside."""
        reading = self._reading if self._builder is None else self._builder.header.reading
        return self._context.diagnostics(reading, shared=self._shared)

    @property
    def files(self) -> Mapping[str, str]:
        """Absolute path → SHA-256 of every file that was read so far."""
        return self._context.disk.digests

    def read_document(self, document: Mapping[str, Json]) -> Suite | None:
        """The suite for a mapping that a program created, or None after reporting errors."""
        top = self._context.top
        try:
            root = node_of(document, top)
        except RecursionError:
            self._report.error("too-deep", top, "this mapping is nested too deeply, or contains itself")
            return None
        assert isinstance(root, MapNode)  # noqa: S101  # made from a mapping
        self._reading = self._reading.rendering(holds_placeholder(root))
        suite = self._suite(root)
        return suite and replace(suite, path="")

    def entries_of(self, node: Node) -> tuple[AssertionEntry, ...]:
        """The assertions of a list that is not in a file, read as if it were in this file."""
        header = self._begin(MapNode({}, {}, node.at)).header
        return header.cases.context.assertions.entries(node, header.reading).value

    def project(self) -> tuple[TargetRegistry, Reading]:
        """The targets that an eval file in this directory can name, and the context to read them in."""
        header = self._begin(self._empty_root).header
        return header.targets.registry, header.reading

    def check_project(self) -> None:
        """Check the `targets.yaml` and `config.yaml` that apply to this directory, with every target."""
        self._shared = True
        self.project()[0].check(self._reading.report)

    def check_meta(self) -> None:
        """Check a prompt's `meta.yaml` that has no exam next to it."""
        from agentv.authoring.prompt_library import read_meta

        self._shared = True
        read_meta(str(Path(self.path).parent), self._reading)

    def check_template(self) -> None:
        """Check a template by itself, without a case."""
        from agentv.authoring.assertions.entries import load_template

        self._shared = True
        header = self._begin(self._empty_root).header
        entries = load_template(self.path, None, self._reading)
        if entries is not None:
            chain = Chain(paths=(self.path,), names=(Path(self.path).name,), alone=True)
            reading = replace(header.reading, chain=chain, renders=False)
            header.cases.context.assertions.entries(entries, reading)

    @property
    def _empty_root(self) -> MapNode:
        return MapNode({}, {}, self._context.top)

    def _sidecar(self) -> MapNode:
        """The YAML file with the same name next to the cases (SPEC section 2); empty if none exists."""
        cases = Path(self.path)
        path = next((str(p) for s in (".yaml", ".yml") if (p := cases.with_suffix(s)).is_file()), None)
        data = self._context.bytes_of(path) if path is not None else None
        if path is None or data is None:
            return self._empty_root
        root, valid = read_yaml(path, data, self._report)
        if not valid:
            self._not_missing = _TARGET_KEYS
        if not isinstance(root, MapNode):
            if root is not None:
                self._report.unfit(root, "a sidecar is a mapping", "bad-eval-file")
            return self._empty_root
        for key in root.items.keys() & TESTS:
            message = f"the cases are in {cases.name}; its sidecar takes no '{key}'"
            self._report.error("bad-eval-file", root.keys[key], message)
        self._reading = self._reading.rendering(b"{{" in data or b"{%" in data)
        return root

    def _yaml_suite(self) -> Suite | None:
        data = self._context.bytes_of(self.path)
        if data is None:
            return None
        forced = self._context.request.dialect
        other = forced is not None or may_be_document(self.path, data)
        self._context.disk.kept = {self.path: data} if other or b"exam" in data else None
        root, valid = self._read_root(data, whole=other)
        if root is None and valid:
            what = "contains only comments" if data.strip() else "is empty"
            hint = "an eval file has 'tests:'; `agentv init` writes an example"
            self._report.error("empty-file", self._context.top, f"this file {what}", hint=hint)
        if root is None:
            return None
        if other and (claims := by_content(self.path, root, data) if forced is None else (Claim(forced),)):
            return self._translated_suite(claims, root)
        samples = of_json(self.path, root)  # another tool's
        if samples is not None:
            self._report.add(samples)
        elif not isinstance(root, MapNode):
            self._report.unfit(root, "an eval file is a mapping with 'tests'", "bad-eval-file")
        elif not self._context.request.for_run and _looks_like_template(root):
            self.check_template()
        else:
            return self._suite(root)
        return None

    def _translated_suite(self, claims: tuple[Claim, ...], root: Node) -> Suite | None:
        """The suite of a file in a dialect, or None after reporting errors."""
        context = self._context
        if len(claims) > 1:
            titles = " and ".join(dialect(str(one.name)).title for one in claims)
            hint = "keep the keys of one of them; if packages add the dialects, 'agentv plugins' lists them"
            self._report.error("bad-eval-file", context.top, f"two dialects claim this file: {titles}", hint=hint)
            return None
        if claims[0].needs:
            self._report.error("bad-eval-file", context.top, f"this is a file of another tool, which {claims[0].needs}")
            return None
        found = dialect(str(claims[0].name))
        assert isinstance(found, DocumentDialect)  # noqa: S101  # no other claims a document
        self.dialect = None if claims[0].name in OWN else found.title
        if _has_its_own_cases(context, f"this file is {found.title}"):
            return None
        if isinstance(root, MapNode):
            env = environment(root.get("env"), self._reading, context.request)
            self._reading = self._reading.within(Scope(EMPTY, env))
        made = found.translate(self.path, root, self._reading, Surroundings(context.runs_code, self._calls_agents))
        if made is None:
            return None
        places = replace(self._reading.places, suite=made.home or self._reading.places.suite, alone=made.own_paths)
        self._reading = replace(self._reading, places=places).rendering(holds_placeholder(made.root))
        self._not_missing |= made.not_missing
        if self._report.failed and not made.reads_on:
            request = replace(self._context.request, for_run=False, makes=False, on_case=None, on_header=None)
            # report other errors too, but not those that may follow from the first ones
            wrong = [one.span for one in self._report.diagnostics if one.severity == "error" and one.span is not None]
            others = SuiteReader(self.path, request, self._context.registries, Report())
            others._reading = replace(self._reading, report=others._report, strict_env=False)
            others._not_missing = _EXPECTED_KEYS
            others._suite(made.root)
            for one in others.diagnostics:
                follows = one.code in _CONSEQUENTIAL_CODES or any(one.span and one.span.within(span) for span in wrong)
                if one.severity == "error" and not follows:
                    self._report.add(one)
            return None
        suite = self._suite(made.root)
        return suite and replace(suite, dialect=self.dialect)

    def _read_root(self, data: bytes, *, whole: bool) -> Result[Node | None]:
        """The root node. Cases are read as a stream if they are the last key of the file.

        `whole`: do not stream, because the root node decides which dialect the file is in.
        """
        line = None if whole else _TESTS_LINE.search(data)
        last = line is not None and not _OTHER_LINE.search(data, line.end())
        self._reading = self._reading.rendering(b"{{" in data or b"{%" in data)
        if may_be_own(self.path, data) == AGENT_SKILLS:
            from agentv.authoring.source.json_text import read_json

            try:
                return read_json(self.path, data.decode("utf-8-sig"), self._report)
            except UnicodeDecodeError:
                return read_yaml(self.path, data, self._report)  # reports the error
        streams = last and self._context.request.tests_from is None
        stream = (TESTS, lambda header: self._begin(header).sources.add if streams else None)
        return read_yaml(self.path, data, self._report, stream=stream)

    def _suite(self, root: MapNode) -> Suite | None:
        request = self._context.request
        if request.on_header is not None:
            request.on_header(root)
        streamed = self._builder is not None
        builder = self._builder or self._begin(root)
        header, authored = builder.header, builder.header.authored
        key = next((key for key in root.items if key in TESTS), None)
        tests = root.items[key] if key is not None else None
        if request.tests_from is None and key is not None and key != "tests":
            self._report.older(key, "tests", root.keys[key])
            self._report.spell(root.items[key], key, "tests")
        if request.tests_from is not None:
            builder.sources.from_command_line(request.tests_from)
        elif tests is not None:
            if not (streamed and isinstance(tests, ListNode) and not tests.items):
                builder.sources.take(tests)
        elif "scenarios" in root.items:
            header.cases.notes.seen = True  # scenarios are cases; that they are not supported yet was reported
        elif "tests" not in self._not_missing and authored.triggering is None and authored.activation is None:
            hint = "this is a template: include it in an eval file" if _looks_like_template(root) else None
            cases = cases_beside(self.path) if hint is None else None
            hint = f"this is the sidecar of {Path(cases).name}; give that file instead" if cases else hint
            self._report.error("missing-key", root, "an eval file needs 'tests'", hint=hint)
        suite = builder.build(tests or root, self._not_missing)
        kept = self._context.disk.kept
        if suite is None or authored.exam is None or kept is None:
            return suite
        # the record of an exam's run covers all files of the exam
        from agentv.authoring.loading.exams import exam_of

        files = {path: data for path, data in kept.items() if path != request.env_file}  # contains secrets
        return replace(suite, exam=exam_of(authored.exam, header, suite, request, files))

    def _begin(self, root: MapNode) -> SuiteBuilder:
        """Read the header, and return the builder that collects the cases."""
        context = self._context
        header = read_header(self.path, root, self._reading, context.request, context.registries)
        self._not_missing |= _EXPECTED_KEYS & {"target" if key == "targets" else key for key in header.not_missing}
        if header.authored.exam is None:
            context.disk.kept = None
        self._builder = SuiteBuilder(context, header)
        return self._builder

    def _calls_agents(self) -> bool:
        """Whether all targets of a file that names none are agents. Mistakes in them are reported later."""
        context = self._context
        quiet = self._reading.reporting_to(Report())
        read = read_header(self.path, self._empty_root, quiet, context.request, context.registries)
        targets = read.suite.targets
        return bool(targets) and all(one.is_agent for one in targets)

    def _python_suite(self) -> Suite | None:
        from agentv.authoring.cases.generators import read_python_suite  # few suites are written in Python

        context = self._context

        def read_made(root: Node, report: Report) -> Suite | None:
            assert isinstance(root, MapNode)  # noqa: S101  # made from a mapping
            made = SuiteReader(self.path, context.request, context.registries, report)
            made._context.boundary.is_open = True  # the file is a program, which can read any file
            made._context.bytes_of(self.path)  # so that the run records its digest
            made._reading = made._reading.rendering(holds_placeholder(root))
            return made._suite(root)

        if context.bytes_of(self.path) is None:
            return None
        return read_python_suite(self.path, self._report, read_made, for_run=context.runs_code)


def _has_its_own_cases(context: SuiteContext, why: str) -> bool:
    """Whether `--tests-from` is set for a file whose cases cannot be replaced, which is then reported."""
    if context.request.tests_from is None:
        return False
    message = f"{why}, so --tests-from does not apply"
    context.reading.report.error("bad-value", context.top, message, hint="give an eval file in YAML")
    return True


def _looks_like_template(root: MapNode) -> bool:
    keys = {key for key in root.items if not key.startswith("x-")}
    return keys <= TEMPLATE.known and not keys.isdisjoint(TEMPLATE.spelled("assert"))
