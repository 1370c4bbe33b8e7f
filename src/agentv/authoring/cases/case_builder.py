"""Builder of a case from its parts: input, assertions and target."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.assertions.graded import assertions_of, counts_any, turn_facts
from agentv.authoring.assertions.needs import Facts, check_needs, need_nothing
from agentv.authoring.cases.case_assertions import CaseAssertions, Entries
from agentv.authoring.cases.case_input import InputReader
from agentv.authoring.cases.context import CaseContext, CaseNotes
from agentv.authoring.cases.defaults import CaseDefaults
from agentv.authoring.cases.dependencies import read_dependencies
from agentv.authoring.cases.matrix import PromptMatrix
from agentv.authoring.cases.messages import read_criteria, read_messages
from agentv.authoring.cases.turns import TurnReader
from agentv.authoring.cases.work import refuse_lacking
from agentv.authoring.cases.written_case import WrittenCase
from agentv.authoring.code.fingerprints import fingerprint
from agentv.authoring.fields.case_options import CaseOptions, read_options
from agentv.authoring.fields.metadata import case_metadata
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredCase
from agentv.authoring.fields.tags import read_tags
from agentv.authoring.source.files import without_home
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, kind_of, plain, span_of
from agentv.authoring.source.report import Report, Result
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry, AssertionSettings, Transform
from agentv.model.suite.conversation import PLAIN, Aggregation, Dependency, Flow, Turn
from agentv.model.suite.grader_files import GraderFiles
from agentv.model.suite.suite import Case, TargetSpec
from agentv.model.suite.workspace import NO_WORK_LIMITS, WorkLimits, WorkspaceSpec
from agentv.model.values.message import Message
from agentv.model.values.values import Json, JsonObject
from agentv.registry.extensions import CASE_KEYS
from agentv.registry.types import ProviderSettings
from agentv.templating import Scope

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode

_NOTHING: Any = DEFAULTS
"""Options of what is no assertion, and only has settings."""


class _Parts(NamedTuple):
    """What was read of one case; None stands for what is wrong, which is reported.

    Attributes:
        graded: the assertions of the case, and those of its turns.
    """

    variables: JsonObject
    criteria: str | None
    turns: tuple[Turn, ...] | None
    entries: tuple[AssertionEntry, ...]
    graded: tuple[AssertionEntry, ...]
    messages: tuple[Message, ...] | None
    reference: tuple[Message, ...] | None
    target: TargetSpec | None
    judge: TargetSpec | None
    tags: tuple[str, ...]
    depends_on: tuple[Dependency, ...]
    options: CaseOptions


class CaseBuilder:
    """Makes the cases of one suite out of what is written.

    Args:
        context: of all cases.
        notes: gets what each case needs of its suite.
        shared: the assertions that the suite adds to each case, if these do not depend on it.
    """

    def __init__(self, context: CaseContext, notes: CaseNotes, shared: Entries | None) -> None:
        self._context = context
        self._notes = notes
        self._input = InputReader(context.defaults)
        self._turns = TurnReader(context.assertions, context.defaults)
        self._assertions = CaseAssertions(context, shared)
        self._digest = _Digest(_encode(context.root)[1:-1] if context.root != "/" else b"\x00", notes.graders)
        prompts = context.defaults.prompts
        self._matrix = PromptMatrix(prompts, lambda facts: self._digest.of(facts, ())) if prompts else None

    def build(self, case: WrittenCase, reading: Reading) -> tuple[Case, ...]:
        """The case, or one for each prompt of the suite; empty if it is invalid, which is reported.

        Args:
            case: as authored.
            reading: of this case alone: its report shows whether the result is valid.
        """
        context, keys = self._context, case.keys
        if context.work is None:
            refuse_lacking(CASE_KEYS, case.translated.map, reading.report)
        variables = _variables(keys.vars, context.defaults, reading)
        if variables.value is not context.defaults.vars:
            reading = reading.within(Scope(variables.value, context.env))
        if not variables.valid:
            reading = reading.rendering(False)  # what the placeholders mean is not known
        parts = self._parts(case, variables.value, reading)
        targets = context.targets if parts.target is None or context.targets_win else (parts.target,)
        self._check(case, parts, reading, targets if variables.valid else None)
        check_attachments(parts.messages or (), targets, keys.input or case.node, reading.report)
        if parts.messages is None or not (parts.graded or context.show_only):
            return ()
        self._notes.zero.look(keys.threshold, parts.entries, case.translated.map, reading.report)
        made = self._case(case, parts, parts.messages, reading)
        if made is None:
            return ()
        check_abilities(made, targets, case.node, reading.report)
        if context.budgets is not None:
            context.budgets.check(case.translated.map, targets, reading.report)
        if made.workspace is not None and context.work is not None:
            context.work.reader.check(made, targets, reading.report)
        made = self._clustered(made, case.node)
        if self._matrix is None:
            return (made,)
        return self._matrix.cases(made, targets, reading.of_suite(), self._input.around(case, reading))

    def end(self, report: Report) -> None:
        """All cases were built: report what is wrong with the prompts and the clusters."""
        if self._matrix is not None:
            self._matrix.end(report)
        if self._context.clusters is not None:
            self._context.clusters.end(report)

    def _parts(self, case: WrittenCase, variables: JsonObject, reading: Reading) -> _Parts:
        context, keys = self._context, case.keys
        criteria = read_criteria(keys.criteria, reading)
        if not criteria.valid:
            case = replace(case, not_missing=case.not_missing | {"criteria"})
        own = read_options(keys.options, "a case", reading)
        options = own.over(context.defaults.options)
        reading = reading.with_rubric(options.rubric)
        turns = self._turns.read(case, reading) if case.has_turns else ()
        entries = self._assertions.read(case, criteria.value, turns, reading, shared=not own.rubric)
        expected, registry = keys.expected_output, context.registry
        judge = keys.judge if keys.judge is not None else options.judge
        judging = reading.of_suite() if judge is not None and keys.judge is None and options.of_suite else reading
        return _Parts(
            variables=variables,
            criteria=criteria.value,
            turns=turns,
            entries=entries,
            graded=(*entries, *assertions_of(turns)) if turns else entries,
            messages=self._input.read(case, reading),
            reference=() if expected is None or is_empty(expected) else read_messages(expected, "assistant", reading),
            target=registry.inline(keys.target, reading) if keys.target is not None else None,
            judge=registry.inline(judge, judging) if judge is not None else None,
            tags=read_tags(keys.tags, reading),
            depends_on=() if keys.depends_on is None else read_dependencies(keys.depends_on, reading),
            options=options,
        )

    def _check(
        self, case: WrittenCase, parts: _Parts, reading: Reading, targets: tuple[TargetSpec, ...] | None
    ) -> None:
        """Check the assertions against the rest of the case, and note what they need.

        `targets`: that it is for; None: its variables are not known.
        """
        several = case.has_turns or case.linked
        alone = "in a case with turns, conversation_id or depends_on" if several else None
        look = self._notes.judging.look
        for entry in parts.graded:
            look(entry, target=parts.target, judge=parts.judge, alone=alone)
        if "rubrics" in case.not_missing and parts.judge is None and not (parts.target and parts.target.judge):
            self._notes.judging.ask(span_of(case.node.at))  # what is misspelt needs a judge, which is reported now
        if targets is not None and parts.reference is not None and not need_nothing(parts.graded):
            has_criteria = parts.criteria is not None
            turns = parts.turns or ()
            facts = Facts(case.keys.id, parts.variables, bool(parts.reference), has_criteria, turns, targets)
            check_needs(parts.entries, facts, reading.report)
        if parts.target is not None or parts.judge is not None:
            self._notes.add_own_targets(parts.target, parts.judge, parts.graded)

    def _case(self, case: WrittenCase, parts: _Parts, messages: tuple[Message, ...], reading: Reading) -> Case | None:
        keys, defaults = case.keys, self._context.defaults
        threshold = keys.threshold if keys.threshold is not None else defaults.threshold
        threshold = 0.0 if self._context.exam else threshold
        metadata = case_metadata(keys, case.node, defaults.metadata, reading.report)
        repeat = keys.repeat if keys.repeat is not None else parts.options.repeat
        flow = _flow(case)
        preamble = self._input.preamble(case, reading)
        turns = parts.turns or ()
        facts: tuple[Any, ...]
        facts = (keys.id, messages, parts.reference, parts.criteria, parts.variables, metadata, threshold, repeat)
        if turns or keys.conversation_id is not None:
            facts = (*facts, keys.conversation_id, preamble, *turn_facts(turns))
        if flow != PLAIN:
            facts = (*facts, flow)
        workspace = self._workspace(keys, reading)
        if workspace is not None:
            facts = (*facts, workspace.sha256)
        work = self._context.work
        has_tools = work is not None and (work.tools is not None or keys.tools is not None)
        tools = work.reader.tools(keys, reading) if work is not None and has_tools else ()
        if tools:
            facts = (*facts, [one.facts() for one in tools])
        budget_usd = keys.limits.budget_usd if keys.limits is not None else None
        limits = WorkLimits(keys.max_turns, keys.max_tool_calls, keys.on_limit, budget_usd)
        if limits != NO_WORK_LIMITS:
            facts = (*facts, limits)
        try:
            digest = self._digest.of(facts, parts.graded, parts.options.transform)
        except UnicodeEncodeError:
            message = (
                "this case contains half of a character (a lone surrogate), which cannot be written to a file or sent"
            )
            reading.report.error("not-unicode", case.node, message)
            return None
        return Case(
            id=keys.id or "",
            input=messages,
            assertions=parts.entries,
            criteria=parts.criteria,
            description=keys.description,
            expected_output=turns[-1].expected_output if turns else parts.reference or (),
            vars=parts.variables,
            metadata=metadata,
            tags=parts.tags,
            threshold=threshold,
            repeat=repeat,
            timeout_s=keys.timeout_s,
            target=parts.target,
            judge=parts.judge,
            id_suffix=case.id_suffix,
            sha256=digest,
            span=span_of(case.node.at),
            turns=turns,
            flow=flow,
            transform=parts.options.transform,
            preamble=preamble,
            conversation_id=keys.conversation_id,
            depends_on=parts.depends_on,
            on_dependency_failure=keys.on_dependency_failure or "skip",
            show_only=self._context.show_only and not counts_any(parts.graded),
            workspace=workspace,
            tools=tools,
            limits=limits,
            solution=None if keys.solution is None or work is None else work.reader.solution(keys, reading),
        )

    def _workspace(self, keys: AuthoredCase, reading: Reading) -> WorkspaceSpec | None:
        """What the agent of a case works in; None where it has no workspace."""
        work = self._context.work
        own = keys.workspace is not None or keys.sandbox is not None or keys.environment is not None
        if work is None or not (own or work.has_workspaces):
            return None
        spec = work.reader.workspace(keys, reading)
        if spec is not None:
            self._notes.sandboxes.add((spec.sandbox, spec.network))
            self._notes.existing |= {spec.existing} if spec.existing is not None else set()
        return spec

    def _clustered(self, made: Case, node: MapNode) -> Case:
        """The case with its cluster, where the suite says what makes one."""
        clusters = self._context.clusters
        if clusters is None:
            return made
        return replace(made, cluster_key=clusters.key, cluster=clusters.value(made.id, node, made.metadata, made.vars))


class _Digest(Struct, frozen=True):
    """Hashes all that was authored for a case. Paths count from the repository's root, wherever that is."""

    root: bytes
    graders: GraderFiles

    def of(
        self, facts: tuple[Any, ...], entries: tuple[AssertionEntry, ...], transform: Transform | None = None
    ) -> str:
        """The hash of a case's content, of its assertions, and of the transforms before them.

        Raises:
            UnicodeEncodeError: it contains half of a character.
        """
        if transform is not None:
            reshapes = AssertionEntry("transform", _NOTHING, AssertionSettings(transform=transform))
            entries = (*entries, reshapes)
        written = _encode((facts, [fingerprint(entry, self.graders) for entry in entries]))
        return hashlib.sha256(without_home(written.replace(self.root, b""))).hexdigest()


def _flow(case: WrittenCase) -> Flow:
    """How the turns of a case make its score: as it says, and as AgentV does where it is written in its words."""
    keys = case.keys
    aggregation: Aggregation | None = keys.aggregation or ("mean" if keys.mode is not None else None)
    if aggregation is None and keys.on_turn_failure is None and keys.window_size is None:
        return PLAIN
    return Flow(aggregation, keys.on_turn_failure or "continue", keys.window_size)


def check_attachments(
    messages: tuple[Message, ...], targets: tuple[TargetSpec, ...], node: Node, report: Report
) -> None:
    """Report, at a case's input, pictures and PDFs that a target does not accept: once for each target."""
    blocks = [block for one in messages if isinstance(one.content, tuple) for block in one.content]
    for spec in targets if blocks else ():
        settings = spec.settings
        found = (settings.refuses(block) for block in blocks) if isinstance(settings, ProviderSettings) else ()
        why = next(filter(None, found), None)
        if why is not None:
            report.error("bad-value", node, f"target '{spec.name}' {why}")


def check_abilities(case: Case, targets: tuple[TargetSpec, ...], node: Node, report: Report) -> None:
    """Report a case whose tools or turns a target cannot have: once for each target."""
    for spec in targets if case.tools or case.turns else ():
        settings = spec.settings
        if isinstance(settings, ProviderSettings):
            why = settings.refuses_case(tools=bool(case.tools), turns=bool(case.turns))
            if why is not None:
                report.error("bad-value", node, f"target '{spec.name}' {why}")


def _variables(node: Node | None, defaults: CaseDefaults, reading: Reading) -> Result[JsonObject]:
    """The variables of a case, over those of its suite and under those of the command line."""
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return Result(defaults.vars)
    if not isinstance(node, MapNode):
        dashes = isinstance(node, ListNode) and any(isinstance(one, MapNode) for one in node.items)
        hint = "write 'name: value' without the dashes" if dashes else "write 'name: value'"
        message = f"'vars' must be a mapping, found {kind_of(node)}"
        reading.report.error("bad-value", node, message, hint=hint)
        return Result(defaults.vars, valid=False)
    own: dict[str, Json] = plain(node)
    return Result({**defaults.vars, **own, **defaults.fixed})
