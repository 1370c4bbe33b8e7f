"""Build a case from its parts: input, assertions and target."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.authoring.assertions.judging import judges
from agentv.authoring.cases.case_assertions import CaseAssertions, Entries, assertions_of, counts_any
from agentv.authoring.cases.collector import read_dependencies
from agentv.authoring.cases.context import CaseContext, CaseDefaults, CaseNotes, SuiteWork, WrittenCase, refuse_lacking
from agentv.authoring.cases.messages import read_criteria, read_files, read_messages, with_files
from agentv.authoring.cases.prompts import SuitePrompt
from agentv.authoring.code.fingerprints import fingerprint
from agentv.authoring.fields.case_keys import CaseOptions, case_metadata, read_options, read_tags
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredCase
from agentv.authoring.source.files import without_home
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, kind_of, plain, span_of
from agentv.authoring.source.report import Report, Result
from agentv.model.run.verdict import ZERO_HINT, always_passes
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry, AssertionSettings
from agentv.model.suite.conversation import PLAIN, Aggregation, Dependency, Flow, Turn
from agentv.model.suite.suite import Case, SimulatedUser, TargetSpec
from agentv.model.suite.workspace import NO_WORK_LIMITS, WorkLimits
from agentv.model.values.message import Message
from agentv.model.values.values import Json, JsonObject
from agentv.registry.extensions import CASE_KEYS
from agentv.registry.fields import DeclaredAssertion
from agentv.registry.types import ProviderSettings
from agentv.templating import UNREADABLE, Scope

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode

_NO_ASSERTION: Any = DEFAULTS
"""Stands in for the assertion of an entry that has only settings."""


class _Parts(Struct, frozen=True):
    """The parts of one case. A part is None if it is absent or invalid; the latter is reported.

    Attributes:
        entries: the assertions of the case itself.
        graded: the assertions of the case and of its turns.
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
    flow: Flow


class CaseBuilder:
    """Builds the cases of one suite from authored cases.

    Args:
        context: shared by all cases.
        notes: receives what each case needs from its suite.
        shared: the assertions that the suite adds to each case; None if they depend on the case.
    """

    def __init__(self, context: CaseContext, notes: CaseNotes, shared: Entries | None) -> None:
        self._context = context
        self._notes = notes
        self._input = InputReader(context.defaults)
        self._assertions = CaseAssertions(context, shared)
        root = context.suite.root
        self._root = _encode(root)[1:-1] if root != "/" else b"\x00"
        prompts = context.defaults.prompts
        self._matrix: PromptMatrix | None = None
        if prompts:
            from agentv.authoring.cases.matrix import PromptMatrix

            self._matrix = PromptMatrix(prompts, lambda facts: self.hash_of(_encode((facts, []))))

    def build(self, case: WrittenCase, reading: Reading) -> tuple[Case, ...]:
        """Build the case, or one case per prompt of the suite. Return () if it is invalid, which is reported.

        Args:
            case: the authored case.
            reading: the `Reading` of this case alone, whose report shows whether the result is valid.
        """
        context, keys = self._context, case.keys
        if context.work is None:
            refuse_lacking(CASE_KEYS, case.node, reading.report)
        given, defaults = keys.vars, context.defaults
        variables = Result(defaults.vars) if given is None else _variables(given, defaults, reading)
        if variables.value is not context.defaults.vars:
            reading = reading.within(Scope(variables.value, context.suite.env))
        if not variables.valid:
            reading = reading.rendering(False)  # the values of placeholders are unknown
        parts = self._parts(case, variables.value, reading)
        targets = context.suite.targets if parts.target is None or context.request.targets_win else (parts.target,)
        self._check(case, parts, reading, targets if variables.valid else None)
        check_attachments(parts.messages or (), targets, keys.input or case.node, reading.report)
        if parts.messages is None or not (parts.graded or context.authored.show_only):
            return ()
        if keys.threshold is None:
            self._notes.ungated = self._notes.ungated or always_passes(0.0, parts.entries)
        elif always_passes(keys.threshold, parts.entries):
            message = "with threshold: 0, every answer passes this case"
            reading.report.warning("zero-threshold", case.node.items["threshold"], message, hint=ZERO_HINT)
        made = self._case(case, parts, parts.messages, reading)
        if made is None:
            return ()
        self._check_targets(made, targets, case.node, reading.report)
        clusters = context.clusters
        if clusters is not None:
            cluster = clusters.value(made.id, case.node, made.metadata, made.vars)
            made = replace(made, cluster_key=clusters.key, cluster=cluster)
        if self._matrix is None:
            return (made,)
        put = self._input.with_defaults
        of_suite = reading.of_suite()
        return self._matrix.cases(made, targets, of_suite, lambda messages, at: put(messages, at, case, reading))

    @property
    def fixed(self) -> JsonObject:
        """Variables that no case can override."""
        return self._context.defaults.fixed

    @property
    def fills_in(self) -> bool:
        """Whether the suite has a prompt, or assertions that depend on a case's variables."""
        return self._context.defaults.prompted or self._assertions.shared is None

    def written(self, case: Case) -> bytes:
        """The content of a case that its hash is computed from.

        Raises:
            UnicodeEncodeError: the case contains a lone surrogate.
        """
        asked = (case.id, case.input, case.expected_output, case.criteria, case.vars, case.metadata)
        turns = [(turn.input, turn.criteria, turn.expected_output, len(turn.assertions)) for turn in case.turns]
        conversation = (turns, case.flow, case.conversation_id, case.preamble, case.user and case.user.facts())
        # of a solution, only the calls matter: assertions may compare the tools' state with their result
        calls = [(one.tool, one.args) for one in case.solution.calls] if case.solution is not None else []
        work = (case.workspace and case.workspace.sha256, [one.facts() for one in case.tools], case.limits, calls)
        graded = (*case.assertions, *assertions_of(case.turns))
        if case.transform is not None:
            graded = (*graded, AssertionEntry("transform", _NO_ASSERTION, AssertionSettings(transform=case.transform)))
        hashes = [fingerprint(entry, self._notes.graders) for entry in graded]
        return _encode((asked, case.threshold, case.repeat, conversation, work, hashes))

    def hash_of(self, written: bytes) -> str:
        """The hash of a case's content, with paths made relative to the repository root."""
        return hashlib.sha256(without_home(written.replace(self._root, b""))).hexdigest()

    def end(self, report: Report) -> None:
        """Report problems of prompts and clusters, after all cases were built."""
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
        turns: tuple[Turn, ...] | None = ()
        if case.scripted:
            turns = self._assertions.turns(case, reading)
        entries = self._assertions.read(case, criteria.value, turns, reading, shared=not own.rubric)
        expected, registry = keys.expected_output, context.registry
        judge = keys.judge if keys.judge is not None else options.judge
        judging = reading.of_suite() if judge is not None and keys.judge is None and options.of_suite else reading
        aggregation: Aggregation | None = keys.aggregation or ("mean" if keys.mode is not None else None)  # as AgentV
        flow = PLAIN
        if aggregation is not None or keys.on_turn_failure is not None or keys.window_size is not None:
            flow = Flow(aggregation, keys.on_turn_failure or "continue", keys.window_size)
        return _Parts(
            variables=variables,
            criteria=criteria.value,
            turns=turns,
            entries=entries,
            graded=(*entries, *assertions_of(turns)) if turns else entries,
            messages=self._input.opening(case, reading) if case.has_turns else self._input.asked(case, reading),
            reference=() if expected is None or is_empty(expected) else read_messages(expected, "assistant", reading),
            target=registry.inline(keys.target, reading) if keys.target is not None else None,
            judge=registry.inline(judge, judging) if judge is not None else None,
            tags=read_tags(keys.tags, reading),
            depends_on=() if keys.depends_on is None else read_dependencies(keys.depends_on, reading),
            options=options,
            flow=flow,
        )

    def _check(
        self, case: WrittenCase, parts: _Parts, reading: Reading, targets: tuple[TargetSpec, ...] | None
    ) -> None:
        """Check the assertions against the rest of the case, and note what they need.

        `targets` are those it runs on; None if the case's variables are invalid.
        """
        keys, notes, judging = case.keys, self._notes, self._notes.judging
        several = case.has_turns or keys.conversation_id is not None or keys.depends_on is not None
        why_alone = "in a case with turns, conversation_id or depends_on" if several else None
        for entry in parts.graded:
            if type(entry.assertion) not in judging.need_no_model:
                judging.add_entry(entry, target=parts.target, judge=parts.judge, why_alone=why_alone)
        if "rubrics" in case.not_missing and parts.judge is None and not (parts.target and parts.target.judge):
            judging.need_judge(span_of(case.node.at))  # invalid rubrics need a judge too: report a missing one now
        judge, target = parts.judge, parts.target
        is_target = judge is not None and judge.name in {one.name for one in targets or ()}
        if keys.judge is not None and judge is not None and is_target and any(map(judges, parts.graded)):
            reading.report.warning("judge-is-target", keys.judge, f"'{judge.name}' grades its own answers")
        unknown = not _without_needs.issuperset([type(entry.assertion) for entry in parts.graded])
        if targets is not None and parts.reference is not None and unknown:
            facts = Facts(keys.id, parts.variables, bool(parts.reference), parts.criteria is not None, targets)
            turns = parts.turns or ()
            of_last = replace(facts, has_reference=bool(turns[-1].expected_output)) if turns else facts
            check_needs(parts.entries, of_last, reading.report)
            for turn in turns:
                own = replace(facts, has_reference=bool(turn.expected_output), has_criteria=turn.criteria is not None)
                check_needs(turn.assertions, own, reading.report)
        if target is not None and target.judge:
            judging.of_cases.setdefault(target.judge, target.name)
        if target is not None and target.missing:
            notes.keyless.setdefault(target.name, target)
        if judge is not None and judge.missing and any(map(judges, parts.graded)):
            judging.keyless.setdefault(judge.name, judge)

    def _check_targets(self, case: Case, targets: tuple[TargetSpec, ...], node: MapNode, report: Report) -> None:
        """Report targets that do not support a case's tools, turns, budget or workspace."""
        for spec in targets if case.tools or case.has_turns else ():
            settings = spec.settings
            if isinstance(settings, ProviderSettings):
                why = settings.refuses_case(tools=bool(case.tools), turns=case.has_turns)
                if why is not None:
                    report.error("bad-value", node, f"target '{spec.name}' {why}")
        self._context.limits.check(node, targets, report)
        if case.workspace is None and not case.tools:
            self._context.limits.check_counts(node, targets, report)
        if case.workspace is not None and self._context.work is not None:
            self._context.work.reader.check(case, targets, report)

    def _case(self, case: WrittenCase, parts: _Parts, messages: tuple[Message, ...], reading: Reading) -> Case | None:
        keys, defaults = case.keys, self._context.defaults
        threshold = keys.threshold if keys.threshold is not None else defaults.threshold
        metadata = case_metadata(keys, case.node, defaults.metadata, reading.report)
        repeat = keys.repeat if keys.repeat is not None else parts.options.repeat
        turns, work = parts.turns or (), self._context.work
        before = defaults.input if keys.conversation_id is not None and keys.skip_defaults is not True else None
        preamble = 0 if before is None else len(read_messages(before, "user", reading.of_suite()) or ())
        user = self._user(keys.user, keys, parts, work, reading) if work is not None and keys.user is not None else None
        own_work = keys.workspace is not None or keys.sandbox is not None or keys.environment is not None
        has_workspace = work is not None and (own_work or work.has_workspaces)
        workspace = work.reader.workspace(keys, reading) if work is not None and has_workspace else None
        if workspace is not None:
            self._notes.sandboxes.add((workspace.sandbox, workspace.network))
            self._notes.existing |= {workspace.existing} if workspace.existing is not None else set()
        has_tools = work is not None and (work.authored.tools is not None or keys.tools is not None)
        tools = work.reader.tools(keys, reading) if work is not None and has_tools else ()
        solution = None if keys.solution is None or work is None else work.reader.solution(keys, tools, reading)
        budget_usd = keys.limits.budget_usd if keys.limits is not None else None
        limits = WorkLimits(keys.max_turns, keys.max_tool_calls, keys.on_limit, budget_usd)
        if limits == NO_WORK_LIMITS:
            limits = NO_WORK_LIMITS  # one object for all cases
        made = Case(
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
            span=span_of(case.node.at),
            turns=turns,
            flow=parts.flow,
            transform=parts.options.transform,
            preamble=preamble,
            conversation_id=keys.conversation_id,
            depends_on=parts.depends_on,
            on_dependency_failure=keys.on_dependency_failure or "skip",
            show_only=self._context.authored.show_only and not counts_any(parts.graded),
            workspace=workspace,
            tools=tools,
            limits=limits,
            user=user,
            solution=solution,
        )
        try:
            return replace(made, sha256=self.hash_of(self.written(made)))
        except UnicodeEncodeError:
            half = "half of a character (a lone surrogate), which cannot be written to a file or sent"
            reading.report.error("not-unicode", case.node, f"this case contains {half}")
            return None

    def _user(
        self, node: Node, keys: AuthoredCase, parts: _Parts, work: SuiteWork, reading: Reading
    ) -> SimulatedUser | None:
        """The simulated user of a case; None if it is invalid, which is reported."""
        given = {"turns": keys.turns, "mode": keys.mode, "conversation_id": keys.conversation_id}
        shared = {"prompt": self._context.defaults.prompt}
        beside = next((key for key, value in (given | shared).items() if value is not None), None)
        if beside is not None:
            owner = "the suite" if beside in shared else "it"
            message = f"a case with 'user' asks its own questions, but {owner} has '{beside}' as well"
            reading.report.error("bad-turn", node, message, hint="keep one of them")
            return None
        user = work.reader.user(node, reading, self._context.registry)
        if user is not None and work.request.first_messages:
            return replace(user, start=user.start or user.goal, max_turns=1, model=None, function="", sha256="")
        if user is not None and user.model is not None:
            self._notes.users.setdefault(user.model.name, user.model)
        elif user is not None and not user.function and parts.judge is None:
            self._notes.judging.need_judge(span_of(node.at))
        return user


def check_attachments(
    messages: tuple[Message, ...], targets: tuple[TargetSpec, ...], node: Node, report: Report
) -> None:
    """Report images and PDFs that a target does not accept, once per target, at the case's input."""
    blocks = [block for one in messages if isinstance(one.content, tuple) for block in one.content]
    for spec in targets if blocks else ():
        settings = spec.settings
        found = (settings.refuses(block) for block in blocks) if isinstance(settings, ProviderSettings) else ()
        why = next(filter(None, found), None)
        if why is not None:
            report.error("bad-value", node, f"target '{spec.name}' {why}")


def _variables(node: Node, defaults: CaseDefaults, reading: Reading) -> Result[JsonObject]:
    """The variables of a case, which override its suite's and are overridden by the command line's."""
    if isinstance(node, Scalar) and node.value is None:
        return Result(defaults.vars)
    if not isinstance(node, MapNode):
        dashes = isinstance(node, ListNode) and any(isinstance(one, MapNode) for one in node.items)
        hint = "write 'name: value' without the dashes" if dashes else "write 'name: value'"
        message = f"'vars' must be a mapping, found {kind_of(node)}"
        reading.report.error("bad-value", node, message, hint=hint)
        return Result(defaults.vars, valid=False)
    own: dict[str, Json] = plain(node)
    return Result({**defaults.vars, **own, **defaults.fixed})


_without_needs: set[type] = set()
"""Assertion types that need nothing. Cached, since every assertion of every case is checked."""


class Facts(Struct, frozen=True):
    """Data of a case that assertions may need; for a case with turns, of the last turn.

    Attributes:
        targets: targets that will be called; empty if they are not known yet.
    """

    id: str | None
    variables: JsonObject
    has_reference: bool
    has_criteria: bool
    targets: Sequence[TargetSpec]


def check_needs(entries: Iterable[AssertionEntry], facts: Facts, report: Report) -> None:
    """Report inputs that entries of a case or turn need and do not have."""
    for entry in entries:
        assertion = entry.assertion
        if type(assertion) in _without_needs:
            continue
        if (
            isinstance(assertion, DeclaredAssertion)
            and type(assertion).missing_inputs is not DeclaredAssertion.missing_inputs
        ):
            for issue in assertion.missing_inputs(
                facts.variables, reference=facts.has_reference, criteria=facts.has_criteria
            ):
                notes = (f"the case '{facts.id}' has none",) if facts.id and issue.code == "missing-key" else ()
                report.error(issue.code, entry.span, issue.message, hint=issue.hint, notes=notes)
            if facts.targets and assertion.lacks_context(facts.variables):
                spec = next((one for one in facts.targets if not getattr(one.settings, "returns_context", True)), None)
                if spec is not None:
                    message = f"'{entry.type}' needs the retrieved text, which target '{spec.name}' does not return"
                    hint = "give it as 'context', as a variable 'context', or by 'context_transform' from the answer"
                    report.error("missing-key", entry.span, message, hint=hint)
        elif hasattr(type(assertion), "assert_"):
            check_needs(entry.inner, facts, report)
        else:
            _without_needs.add(type(assertion))


class InputReader(Struct, frozen=True):
    """Reads the inputs of one suite's cases. Its methods return None for an invalid input, which is reported."""

    defaults: CaseDefaults

    def asked(self, case: WrittenCase, reading: Reading) -> tuple[Message, ...] | None:
        """The messages of a case without turns."""
        given, defaults = case.keys.input, self.defaults
        missing = given is None or is_empty(given)
        if defaults.prompt is not None and missing:
            return self._of_prompt(defaults.prompt, case, reading)
        if defaults.prompted and missing:
            return ()
        if given is None and not case.alone and defaults.input is not None:
            own = _question(defaults.input, case.node, reading.of_suite())
            return None if own is None else self._with_files(own, defaults.input, case, reading)
        if given is None or missing:
            if "input" not in case.not_missing:
                reading.report.error("missing-input", given or case.node, "a case needs 'input'")
            return None
        own = _question(given, given, reading)
        if own is None or defaults.prompts:
            return own
        return self.with_defaults(own, given, case, reading)

    def _of_prompt(self, prompt: SuitePrompt, case: WrittenCase, reading: Reading) -> tuple[Message, ...] | None:
        """The suite's prompt, filled in with a case's variables. Errors are reported at the prompt."""
        from agentv.authoring.cases.prompts import filled

        own = reading.of_suite().reporting_to(reading.report.empty_copy()).rendering(prompt.templated)
        messages = filled(prompt.sections, own) if prompt.sections else _question(prompt.node, prompt.node, own)
        for one in own.report.diagnostics:
            of_all = one.code == "unset-environment" or one.message.startswith(UNREADABLE)
            where = "" if of_all else f", in the case '{case.keys.id}'"
            reading.report.add(structs.replace(one, message=f"{one.message}{where}"))
        if messages is None:
            reading.report.leave_unrendered()
            return None
        return self.with_defaults(messages, prompt.node, case, reading)

    def opening(self, case: WrittenCase, reading: Reading) -> tuple[Message, ...] | None:
        """The messages before the first turn of a case: the suite's `input`, then the case's own."""
        given = case.keys.input
        own = () if given is None or is_empty(given) else read_messages(given, "user", reading)
        before = self.defaults.input if case.keys.skip_defaults is not True else None
        if before is None or own is None or self.defaults.prompts:  # the suite's input is put before each prompt
            return own
        shared = read_messages(before, "user", reading.of_suite())
        return None if shared is None else (*shared, *own)

    def with_defaults(
        self, own: tuple[Message, ...], given: Node, case: WrittenCase, reading: Reading
    ) -> tuple[Message, ...] | None:
        """The messages with their files, after the suite's `input` unless `skip_defaults` is set."""
        with_own = own if case.has_turns else self._with_files(own, given, case, reading)
        if self.defaults.input is None or case.keys.skip_defaults is True or with_own is None:
            return with_own
        before = read_messages(self.defaults.input, "user", reading.of_suite())
        return None if before is None else (*before, *with_own)

    def _with_files(
        self, own: tuple[Message, ...], given: Node, case: WrittenCase, reading: Reading
    ) -> tuple[Message, ...] | None:
        """The messages with the case's files, or else with the suite's."""
        files, shared = case.keys.input_files, self.defaults.input_files
        if files is None:
            attaches = shared is not None and case.keys.skip_defaults is not True and isinstance(given, Scalar)
            return with_files(own, read_files(shared, reading.of_suite()).value) if attaches and shared else own
        if not isinstance(given, Scalar) or len(own) != 1 or not isinstance(own[0].content, str):
            message = "'input_files' needs an input that is a text"
            hint = "write blocks with 'type: file' into the messages"
            reading.report.error("bad-value", files, message, hint=hint)
            return None
        found = read_files(files, reading)
        return with_files(own, found.value) if found.valid else None


def _question(node: Node, at: Node, reading: Reading) -> tuple[Message, ...] | None:
    """Read messages, which must not be empty once their placeholders are filled in."""
    own = read_messages(node, "user", reading)
    if own is not None and reading.renders and not any(message.content for message in own):
        reading.report.error("missing-input", at, "'input' is empty after its placeholders are filled in")
        return None
    return own
