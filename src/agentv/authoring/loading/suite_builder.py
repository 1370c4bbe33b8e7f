"""The context in which an eval file is read, and the builder of its suite from header, cases, targets and judges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.authoring.cases.collector import CaseCollector
from agentv.authoring.cases.datasets import CaseSources
from agentv.authoring.dialects.recognition import cases_of_samples
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.fields.spellings import SUITE
from agentv.authoring.header import Header
from agentv.authoring.source.boundary import Boundary, boundary_around
from agentv.authoring.source.files import DiskReader, Places, is_file, repository_root, template_home
from agentv.authoring.source.nodes import Node
from agentv.authoring.source.report import Report
from agentv.authoring.targets.target import report_missing
from agentv.errors import Diagnostic, Severity
from agentv.model.redaction import Redactor
from agentv.model.run.grade import reaches
from agentv.model.run.verdict import ZERO_HINT
from agentv.model.suite.assertion import Transform
from agentv.model.suite.files import Checkout, RepositoryFile, Unavailable
from agentv.model.suite.suite import SkillMinimums, Suite, TargetSpec
from agentv.model.suite.workspace import WorkspaceUse
from agentv.model.values.values import EMPTY, Span, lazy_pattern
from agentv.registry.fields import JavaScriptSource, is_declared, options_of
from agentv.templating import Scope


class SuiteContext(Struct, frozen=True):
    """Context in which one eval file is read.

    Attributes:
        path: path of the eval file.
        registries: meaning of names.
        disk: reads files, and records their digests.
        boundary: files that may be read.
        reading: context of the header, without the environment, which is not known yet.
    """

    path: str
    request: LoadRequest
    registries: Registries
    disk: DiskReader
    boundary: Boundary
    reading: Reading

    @classmethod
    def of(cls, path: str, request: LoadRequest, registries: Registries, report: Report) -> SuiteContext:
        """The context for the file at a path."""
        directory = template_home(path) or str(Path(path).parent)  # base of the file's paths
        root = repository_root(directory)
        typed = {request.env_file} if request.env_file is not None else set()
        boundary = replace(boundary_around(directory, root), is_open=request.allow_outside, typed=typed)
        disk = DiskReader(request.edits, boundary)
        places = Places(directory, root, on_path=request.on_path, boundary=boundary)

        def checkout(wanted: RepositoryFile) -> Checkout | Unavailable:
            return registries.checkouts(wanted, request.process_env)

        reading = Reading(
            report,
            disk,
            places,
            Scope(EMPTY, {}),
            strict_env=request.for_run,
            checkout=checkout,
            spares=request.for_run and not (request.asks and request.asks_targets),
            providers=registries.providers,
        )
        return cls(path, request, registries, disk, boundary, reading)

    @property
    def top(self) -> Span:
        """The start of the file."""
        return Span.start_of(self.path)

    @property
    def runs_code(self) -> bool:
        """Whether to run code that generates cases."""
        return self.request.for_run or self.request.makes

    def bytes_of(self, path: str) -> bytes | None:
        """The content of a file, or None after reporting that it cannot be read."""
        try:
            return self.disk.read(path)
        except OSError as error:
            self.reading.report.unreadable(path, error)
        return None

    def diagnostics(self, reading: Reading, *, shared: bool) -> tuple[Diagnostic, ...]:
        """Diagnostics without ignored ones, sorted by position, and without secrets or content from outside.

        Args:
            reading: context of the suite as far as it was read, with the secrets.
            shared: the file is used by many suites, such as a template.
        """
        found, marked = tuple(map(self.boundary.shown, self.reading.report.diagnostics)), self.disk.marked
        if found:
            redactor = Redactor(reading.environment_secrets() | reading.secrets)
            found = tuple(map(redactor.redact_diagnostic, found)) if redactor else found
        if not marked:
            return found
        from agentv.authoring.source.ignores import without_ignored

        # unused ignore comments are found only if all diagnostics are reported: not in a run, which omits hints, nor
        # for a template, some of whose diagnostics are reported for the eval files that include it
        own = Path(self.path).with_suffix("")
        alone = self.request.for_run or shared
        reported = [] if alone else [path for path in marked if Path(path).with_suffix("") == own]
        return without_ignored(found, marked, reported=reported)


TESTS = frozenset(SUITE.spelled("tests"))
"""Keys of an eval file that contain or name its cases."""

_TESTS_KEY = lazy_pattern(
    rb"""(?:^|[{,]\s*)["']?(?:""" + b"|".join(key.encode() for key in sorted(TESTS)) + rb""")["']?\s*:""", re.MULTILINE
)


def cases_beside(path: str) -> str | None:
    """The JSON Lines file of which a YAML file is the sidecar, or None if it is an eval file itself."""
    cases = Path(path).with_suffix(".jsonl")
    if not cases.is_file() or not is_file(path) or _TESTS_KEY.search(Path(path).read_bytes()):
        return None
    return str(cases)


class SuiteBuilder:
    """Builds one suite.

    Attributes:
        context: context of the eval file.
        header: everything except the cases.
        collector: collects the cases.
        sources: reads the cases.
        skill_minimums: minimums of `activation`.
    """

    def __init__(self, context: SuiteContext, header: Header) -> None:
        self.context = context
        self.header = header
        self.skill_minimums: SkillMinimums | None = None
        self.collector = CaseCollector(header.cases.notes, header.reading.report)
        self.sources = CaseSources(
            context.path,
            header.cases,
            self.collector,
            header.reading,
            context.disk,
            for_run=context.runs_code,
            trusted=context.request.trust_data or header.suite.run.trust_data is True,
            samples=cases_of_samples,
        )
        authored, notes, assertions = header.authored, header.cases.notes, header.cases.context.assertions
        if authored.triggering is not None:
            from agentv.authoring.cases.triggering import trigger_cases

            notes.seen = True
            for case in trigger_cases(authored.triggering, assertions, notes.judging, header.reading):
                self.collector.asks_judge = True
                self.collector.add((case,))
        work = header.cases.context.work
        if authored.activation is not None and work is not None:
            notes.seen = True
            nodes, self.skill_minimums = work.reader.activation(authored.activation, header.reading)
            for node in nodes:
                self.collector.add(header.cases.read(node, header.reading, written=False))

    def build(self, tests: Node | None, not_missing: frozenset[str]) -> Suite | None:
        """The suite, once all cases were read, or None after reporting all errors.

        Args:
            tests: node that contains or names the cases, at which to report that none exist.
            not_missing: keys not to report as missing.
        """
        header, request, report = self.header, self.context.request, self.context.reading.report
        notes, suite, reading, registry = header.cases.notes, header.suite, header.reading, header.targets.registry
        links = self.collector.end(self.context.top)
        header.cases.builder.end(report)
        if not notes.seen and not report.failed and "tests" not in not_missing:
            report.error("no-tests", tests or self.context.top, "this file contains no cases")
        if not request.for_run:  # check unused targets too, without recording their files for the suite
            disk = self.context.disk
            kept, disk.kept = disk.kept, None
            registry.check(reading.report)
            disk.kept = kept
        judging = notes.judging
        header.targets.settle(suite, reading, untargeted=notes.untargeted, judged=judging.asks_suite)
        untargeted = notes.untargeted and "target" not in not_missing
        header.targets.need(header.authored.targets, suite.span, reading, untargeted=untargeted)
        threshold, at = header.threshold
        if notes.ungated and threshold is not None and reaches(0.0, threshold):
            report.warning("zero-threshold", at, "with threshold: 0, every answer passes", hint=ZERO_HINT)
        broken = header.targets.of_judge.failed or header.targets.of_default_judge.failed
        judged = "judge" not in not_missing and not broken
        needed = request.for_run and judged
        unset = judged and (request.for_run or not request.process_env.get("AGENTV_JUDGE"))
        severity: Severity = "error" if request.for_run and not request.lists else "warning"
        if unset and (by_key := judging.judge_by_key(suite, registry, reading)) is not None:
            suite = structs.replace(suite, default_judge=by_key)
        judges = judging.resolve(suite, registry, reading, nameless=severity if unset else None)
        if not request.for_run or needed or suite.judge is not None:  # an invalid judge might compute embeddings
            judging.need_embedder(suite, judges, reading, severity)
        judging.need_comparison_group(suite, reading, for_run=request.for_run, targets_win=request.targets_win)
        asked = suite.targets if request.targets_win or notes.untargeted else ()  # the systems under test
        asked = asked if request.targets_win else (*asked, *notes.keyless.values())
        asked = asked if request.asks_targets else ()
        called = (*asked, *judging.used(suite, judges), *notes.users.values())
        uncalled = suite.targets if request.for_run and not request.asks_targets else ()
        for lacking in chain.from_iterable(one.unset for one in uncalled):
            report.add(replace(lacking, severity="warning"))
        report_missing(called, reading, asks=request.for_run and request.asks)
        uses = (*reading.javascript, *(spec.span for spec in called if runs_javascript(spec)))
        if uses and (request.asks or not request.for_run):  # if answers are replayed, JavaScript may not run
            report_missing_runtime(uses, reading.scope.env, report, "error" if request.for_run else "warning")
        if report.failed:
            return None
        prompts = header.cases.context.defaults.prompts if request.for_run else ()
        written = (one.id for one in prompts if one.function is not None)
        return structs.replace(
            suite,
            cases=self.collector.cases,
            tally=None if self.collector.asks_judge else self.collector.tally,
            links=links,
            generators=(*self.sources.called, *written),
            judges=judges,
            compares=bool(judging.comparing),
            secrets=reading.environment_secrets() | reading.secrets,
            unsearched=frozenset(reading.unsearched),
            above=dict(reading.above),
            files=dict(self.context.disk.digests),
            graders=notes.graders,
            skill_minimums=self.skill_minimums,
            workspaces=WorkspaceUse(frozenset(notes.sandboxes), frozenset(notes.existing)),
        )


_CODE = "no-javascript-runtime"
_KINDS = frozenset({"javascript", "javascript-file"})


def report_missing_runtime(
    uses: Iterable[Span | None], env: Mapping[str, str], report: Report, severity: Severity
) -> None:
    """Report at the first use of JavaScript that no runtime is installed, if that is so.

    Args:
        uses: positions of the code; None for a target of the command line.
        env: environment whose PATH is searched for a runtime.
        report: receives the diagnostic.
        severity: "error" if the code will run now.
    """
    if any(one.code == _CODE for one in report.diagnostics):  # reported for a prompt that JavaScript generates
        return
    places = list(dict.fromkeys(uses))
    from agentv.user_code.javascript.runtime import HOW_TO_GET, find_runtime

    found = find_runtime(env.get("PATH", ""))
    if not isinstance(found, str):
        return
    notes = ("other places of this suite use JavaScript, too",) if len(places) > 1 else ()
    message = f"this needs a JavaScript runtime; {found}"
    report.add(Diagnostic(_CODE, message, places[0], severity, HOW_TO_GET, notes))


def runs_javascript(spec: TargetSpec) -> bool:
    """Whether calls of a target run JavaScript inside agentv."""
    settings = spec.settings
    values = [getattr(settings, name) for name in options_of(settings)] if is_declared(settings) else []
    return any(
        isinstance(one, JavaScriptSource) or (isinstance(one, Transform) and one.kind in _KINDS) for one in values
    )
