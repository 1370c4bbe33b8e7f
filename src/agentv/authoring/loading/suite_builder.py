"""A suite put together: its header, its cases, and the targets and judges that these need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs
from msgspec.structs import replace

from agentv.authoring.cases.collector import CaseCollector
from agentv.authoring.cases.datasets import CaseSources
from agentv.authoring.dialects.recognition import cases_of_samples
from agentv.authoring.header import Header
from agentv.authoring.loading.context import SuiteContext
from agentv.authoring.source.nodes import Node
from agentv.authoring.source.report import Report
from agentv.authoring.targets.target import report_missing
from agentv.errors import Diagnostic, Severity
from agentv.model.suite.assertion import Transform
from agentv.model.suite.suite import SkillMinimums, Suite, TargetSpec
from agentv.model.suite.workspace import WorkspaceUse
from agentv.model.values.span import Span
from agentv.registry.fields import JavaScriptSource, is_declared, options_of


class SuiteBuilder:
    """Makes one suite.

    Attributes:
        context: of the eval file.
        header: all but the cases.
        collector: gets the cases.
        sources: finds the cases.
        skill_minimums: of `activation`.
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
        if header.triggering is not None:
            from agentv.authoring.cases.triggering import trigger_cases

            notes = header.cases.notes
            notes.seen = True
            self.collector.ask(trigger_cases(header.triggering, header.assertions, notes.judging, header.reading))
        work = header.cases.context.work
        if header.activation is not None and work is not None:
            header.cases.notes.seen = True
            nodes, self.skill_minimums = work.reader.activation(header.activation, header.reading)
            for node in nodes:
                self.collector.add(header.cases.read(node, header.reading, written=False))

    @property
    def makes_cases(self) -> bool:
        """Whether the file has cases without `tests`."""
        return self.header.triggering is not None or self.header.activation is not None

    def build(self, tests: Node | None, not_missing: frozenset[str]) -> Suite | None:
        """The suite, once all cases are collected; None where anything is wrong, all of which is then reported.

        Args:
            tests: where the cases are said, for what is wrong with all of them.
            not_missing: keys whose absence is not to be reported.
        """
        header, request, report = self.header, self.context.request, self.context.report
        notes, suite, reading, registry = header.cases.notes, header.suite, header.reading, header.targets.registry
        links = self.collector.end(self.context.top)
        header.cases.end(report)
        if not notes.seen and not report.failed and "tests" not in not_missing:
            report.error("no-tests", tests or self.context.top, "this file contains no cases")
        if not request.for_run:
            self._check_unused()
        judging = notes.judging
        header.targets.settle(suite, reading, untargeted=notes.untargeted, judged=judging.asks_suite)
        untargeted = notes.untargeted and "target" not in not_missing
        header.targets.need(header.targets_node, suite.span, reading, untargeted=untargeted)
        notes.zero.close(*header.threshold, report)
        judged = "judge" not in not_missing and not header.targets.judge_broken
        needed = request.for_run and judged
        unset = judged and (request.for_run or not request.process_env.get("AGENTV_JUDGE"))
        severity: Severity = "error" if request.for_run and not request.lists else "warning"
        if unset and (by_key := judging.judge_by_key(suite, registry, reading)) is not None:
            suite = structs.replace(suite, default_judge=by_key)
        judges = judging.resolve(suite, registry, reading, nameless=severity if unset else None)
        if not request.for_run or needed or suite.judge is not None:  # a judge that cannot be read might embed
            judging.need_embedder(suite, judges, reading, severity)
        judging.need_comparison_group(suite, reading, for_run=request.for_run, flagged=self._targets_win)
        called = (*self._called_targets(), *judging.used(suite, judges), *notes.users.values())
        if request.for_run and not request.asks_targets:
            self._warn_unset(suite.targets)
        report_missing(called, reading, asks=request.for_run and request.asks)
        self._report_javascript(called)
        if not request.for_run:
            self._check_unused()
        if report.failed:
            return None
        return structs.replace(
            suite,
            cases=self.collector.cases,
            tally=None if self.collector.asks_judge else self.collector.tally,
            links=links,
            generators=(*self.sources.called, *self._prompt_functions()),
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

    def _check_unused(self) -> None:
        """Report mistakes in targets that nothing uses. Their files do not belong to the suite."""
        disk = self.context.disk
        kept, disk.kept = disk.kept, None
        self.header.targets.registry.check(self.header.reading.report)
        disk.kept = kept

    @property
    def _targets_win(self) -> bool:
        """Whether the command line names the targets of all cases."""
        request = self.context.request
        return bool(request.targets) or request.given_target is not None

    def _warn_unset(self, targets: Iterable[TargetSpec]) -> None:
        """What the environment lacks for targets that are not called, which is no error."""
        for one in targets:
            for unset in one.unset:
                self.context.report.add(replace(unset, severity="warning"))

    def _report_javascript(self, called: Iterable[TargetSpec]) -> None:
        """Report that there is no runtime for the suite's JavaScript. Where answers are replayed, it may not run."""
        request, reading = self.context.request, self.header.reading
        if request.for_run and not request.asks:
            return

        uses = (*reading.javascript, *(spec.span for spec in called if runs_javascript(spec)))
        report_missing_runtime(uses, reading.scope.env, reading.report, "error" if request.for_run else "warning")

    def _prompt_functions(self) -> Iterator[str]:
        """The functions that were called to write prompts."""
        if self.context.request.for_run:
            yield from (one.id for one in self.header.cases.context.defaults.prompts if one.function is not None)

    def _called_targets(self) -> Iterator[TargetSpec]:
        """The systems under test that a run of this suite would call."""
        if not self.context.request.asks_targets:
            return
        notes = self.header.cases.notes
        if self._targets_win or notes.untargeted:
            yield from self.header.suite.targets
        if not self._targets_win:
            yield from notes.keyless.values()


_CODE = "no-javascript-runtime"
_KINDS = frozenset({"javascript", "javascript-file"})


def report_missing_runtime(
    uses: Iterable[Span | None], env: Mapping[str, str], report: Report, severity: Severity
) -> None:
    """Report, where JavaScript is first used, that no runtime for it is installed.

    Args:
        uses: positions; None for a target of the command line.
        env: the environment in which the runtime is looked for.
        report: gets the diagnostic.
        severity: an error where the code will run now.
    """
    if any(one.code == _CODE for one in report.diagnostics):  # a prompt in JavaScript was to be written
        return
    places = list(dict.fromkeys(uses))
    if not places:
        return
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
    return is_declared(settings) and any(_is_javascript(getattr(settings, name)) for name in options_of(settings))


def _is_javascript(value: object) -> bool:
    return isinstance(value, JavaScriptSource) or (isinstance(value, Transform) and value.kind in _KINDS)
