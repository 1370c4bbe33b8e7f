"""Builder of a case from its parts: input, assertions and target."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.authoring.assertions.judging import judges
from agentv.authoring.cases.case_assertions import CaseAssertions, Entries, assertions_of, counts_any, turn_facts
from agentv.authoring.cases.collector import read_dependencies
from agentv.authoring.cases.context import CaseContext, CaseDefaults, CaseNotes, WrittenCase, refuse_lacking
from agentv.authoring.cases.messages import read_criteria, read_files, read_messages, with_files
from agentv.authoring.cases.prompts import SuitePrompt
from agentv.authoring.code.fingerprints import fingerprint
from agentv.authoring.fields.case_keys import CaseOptions, case_metadata, read_options, read_tags
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredCase
from agentv.authoring.source.files import without_home
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, kind_of, plain, span_of
from agentv.authoring.source.report import Report, Result
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry, AssertionSettings, Transform
from agentv.model.suite.conversation import PLAIN, Aggregation, Dependency, Flow, Turn
from agentv.model.suite.files import GraderFiles
from agentv.model.suite.suite import Case, SimulatedUser, TargetSpec
from agentv.model.suite.workspace import NO_WORK_LIMITS, WorkLimits, WorkspaceSpec
from agentv.model.values.message import Message
from agentv.model.values.values import Json, JsonObject
from agentv.registry.extensions import CASE_KEYS
from agentv.registry.fields import DeclaredAssertion
from agentv.registry.types import ProviderSettings
from agentv.templating import UNREADABLE, Scope

if TYPE_CHECKING:
    from agentv.authoring.cases.matrix import Around

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode

_NOTHING: Any = DEFAULTS
"""Options of what is no assertion, and only has settings."""


class _Parts(Struct, frozen=True):
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
        self._assertions = CaseAssertions(context, shared)
        self._digest = _Digest(_encode(context.root)[1:-1] if context.root != "/" else b"\x00", notes.graders)
        prompts = context.defaults.prompts
        self._matrix: PromptMatrix | None = None
        if prompts:
            from agentv.authoring.cases.matrix import PromptMatrix

            self._matrix = PromptMatrix(prompts, lambda facts: self._digest.of(facts, ()))

    def build(self, case: WrittenCase, reading: Reading) -> tuple[Case, ...]:
        """The case, or one for each prompt of the suite; empty if it is invalid, which is reported.

        Args:
            case: as authored.
            reading: of this case alone: its report shows whether the result is valid.
        """
        context, keys = self._context, case.keys
        if context.work is None:
            refuse_lacking(CASE_KEYS, case.node, reading.report)
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
        self._notes.zero.look(keys.threshold, parts.entries, case.node, reading.report)
        made = self._case(case, parts, parts.messages, reading)
        if made is None:
            return ()
        check_abilities(made, targets, case.node, reading.report)
        if context.budgets is not None:
            context.budgets.check(case.node, targets, reading.report)
        if made.workspace is not None and context.work is not None:
            context.work.reader.check(made, targets, reading.report)
        made = self._clustered(made, case.node)
        if self._matrix is None:
            return (made,)
        return self._matrix.cases(made, targets, reading.of_suite(), self._input.around(case, reading))

    @property
    def fixed(self) -> JsonObject:
        """Variables that no case can override."""
        return self._context.defaults.fixed

    @property
    def fills_in(self) -> bool:
        """Whether the suite may give cases something that their variables change: a prompt, or assertions."""
        return self._context.defaults.prompted or self._assertions.shared is None

    def written(self, case: Case) -> bytes:
        """What the hash of a case without turns, tools or a workspace is made of.

        Raises:
            UnicodeEncodeError: it contains half of a character.
        """
        facts = (case.id, case.input, case.expected_output, case.criteria, case.vars, case.metadata)
        return self._digest.written((*facts, case.threshold, case.repeat), case.assertions)

    def hash_of(self, written: bytes) -> str:
        """The hash of a case of which this is written."""
        return self._digest.hash_of(written)

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
        turns: tuple[Turn, ...] | None = ()
        if case.scripted:
            from agentv.authoring.cases.turns import TurnReader

            turns = TurnReader(self._context.assertions, self._context.defaults).read(case, reading)
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
        judging = self._notes.judging
        for entry in parts.graded:
            if type(entry.assertion) not in judging.indifferent:
                judging.look(entry, target=parts.target, judge=parts.judge, alone=alone)
        if "rubrics" in case.not_missing and parts.judge is None and not (parts.target and parts.target.judge):
            judging.ask(span_of(case.node.at))  # what is misspelt needs a judge, which is reported now
        judge, own = parts.judge, case.keys.judge
        is_target = judge is not None and judge.name in {target.name for target in targets or ()}
        if own is not None and judge is not None and is_target and any(map(judges, parts.graded)):
            reading.report.warning("judge-is-target", own, f"'{judge.name}' grades its own answers")
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
        metadata = case_metadata(keys, case.node, defaults.metadata, reading.report)
        repeat = keys.repeat if keys.repeat is not None else parts.options.repeat
        flow = _flow(case)
        preamble = self._input.preamble(case, reading)
        turns = parts.turns or ()
        facts: tuple[Any, ...]
        facts = (keys.id, messages, parts.reference, parts.criteria, parts.variables, metadata, threshold, repeat)
        user = self._user(case, parts, reading)
        if user is not None:
            facts = (*facts, user.facts())
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
        solution = None if keys.solution is None or work is None else work.reader.solution(keys, tools, reading)
        if solution is not None and solution.calls:  # assertions may compare with what these leave
            facts = (*facts, [(one.tool, one.args) for one in solution.calls])
        budget_usd = keys.limits.budget_usd if keys.limits is not None else None
        limits = WorkLimits(keys.max_turns, keys.max_tool_calls, keys.on_limit, budget_usd)
        if limits == NO_WORK_LIMITS:
            limits = NO_WORK_LIMITS  # one for all cases
        else:
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
            user=user,
            solution=solution,
        )

    def _user(self, case: WrittenCase, parts: _Parts, reading: Reading) -> SimulatedUser | None:
        """Who talks with the target of a case; None where nobody does."""
        keys, work = case.keys, self._context.work
        if keys.user is None or work is None:
            return None
        given = {"turns": keys.turns, "mode": keys.mode, "conversation_id": keys.conversation_id}
        shared = {"prompt": self._context.defaults.prompt}
        beside = next((key for key, value in (given | shared).items() if value is not None), None)
        if beside is not None:
            owner = "the suite" if beside in shared else "it"
            message = f"a case with 'user' asks its own questions, but {owner} has '{beside}' as well"
            reading.report.error("bad-turn", keys.user, message, hint="keep one of them")
            return None
        user = work.reader.user(keys.user, reading, self._context.registry)
        if user is not None and work.first_messages:
            return replace(user, start=user.start or user.goal, max_turns=1, model=None, function="", sha256="")
        if user is not None and user.model is not None:
            self._notes.users.setdefault(user.model.name, user.model)
        elif user is not None and not user.function and parts.judge is None:
            self._notes.judging.ask(span_of(keys.user.at))
        return user

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
        return self.hash_of(self.written(facts, entries))

    def written(self, facts: tuple[Any, ...], entries: tuple[AssertionEntry, ...]) -> bytes:
        """The content of a case and of its assertions.

        Raises:
            UnicodeEncodeError: it contains half of a character.
        """
        return _encode((facts, [fingerprint(entry, self.graders) for entry in entries]))

    def hash_of(self, written: bytes) -> str:
        """The hash of what is written, wherever the repository is."""
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
    for spec in targets if case.tools or case.has_turns else ():
        settings = spec.settings
        if isinstance(settings, ProviderSettings):
            why = settings.refuses_case(tools=bool(case.tools), turns=case.has_turns)
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


_modest: set[type] = set()
"""Types that need nothing, so that they are seen at a glance: this is asked for every assertion of every case."""


class Facts(Struct, frozen=True):
    """Data of a case that assertions may need; for a case with turns, of the last turn.

    Attributes:
        targets: that will be called; empty where that is not known yet.
    """

    id: str | None
    variables: JsonObject
    has_reference: bool
    has_criteria: bool
    turns: Sequence[Turn]
    targets: Sequence[TargetSpec] = ()


def need_nothing(entries: Iterable[AssertionEntry]) -> bool:
    """Whether all entries are known to need nothing from a case, as most do."""
    return _modest.issuperset([type(entry.assertion) for entry in entries])


def check_needs(entries: Iterable[AssertionEntry], facts: Facts, report: Report) -> None:
    """Report what the entries of one case lack, and those of its turns."""
    last = facts.turns[-1].expected_output if facts.turns else None
    _check(entries, facts if last is None else replace(facts, has_reference=bool(last)), report)
    for turn in facts.turns:
        own = replace(facts, has_reference=bool(turn.expected_output), has_criteria=turn.criteria is not None)
        _check(turn.assertions, own, report)


def _check(entries: Iterable[AssertionEntry], facts: Facts, report: Report) -> None:
    for entry in entries:
        assertion = entry.assertion
        if type(assertion) in _modest:
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
                _report_no_context(entry, facts.targets, report)
        elif hasattr(type(assertion), "assert_"):
            _check(entry.inner, facts, report)
        else:
            _modest.add(type(assertion))


def _report_no_context(entry: AssertionEntry, targets: Iterable[TargetSpec], report: Report) -> None:
    """Report the first target whose replies contain no retrieved text."""
    mute = next((one for one in targets if not getattr(one.settings, "returns_context", True)), None)
    if mute is not None:
        message = f"'{entry.type}' needs the retrieved text, which target '{mute.name}' does not return"
        hint = "give it as 'context', as a variable 'context', or by 'context_transform' from the answer"
        report.error("missing-key", entry.span, message, hint=hint)


class InputReader(Struct, frozen=True):
    """Reads the inputs of the cases of one suite. Returns None for an invalid one, which is reported."""

    defaults: CaseDefaults

    def read(self, case: WrittenCase, reading: Reading) -> tuple[Message, ...] | None:
        """The messages of a case, or those before its first turn."""
        return self._opening(case, reading) if case.has_turns else self._input(case, reading)

    def preamble(self, case: WrittenCase, reading: Reading) -> int:
        """Number of messages that the suite puts before those of a case in a conversation."""
        if case.keys.conversation_id is None or case.keys.skip_defaults is True or self.defaults.input is None:
            return 0
        return len(self._of_suite(self.defaults.input, reading) or ())

    def around(self, case: WrittenCase, reading: Reading) -> Around:
        """Puts what the suite says for all inputs around the messages of a prompt."""

        def around(messages: tuple[Message, ...], node: Node) -> tuple[Message, ...] | None:
            return self._with_defaults(messages, node, case, reading)

        return around

    def _input(self, case: WrittenCase, reading: Reading) -> tuple[Message, ...] | None:
        given, defaults = case.keys.input, self.defaults
        if defaults.prompt is not None and (given is None or is_empty(given)):
            return self._of_prompt(defaults.prompt, case, reading)
        if defaults.prompted and (given is None or is_empty(given)):
            return ()
        if given is None and not case.alone and defaults.input is not None:
            own = _question(defaults.input, case.node, reading.of_suite())
            return None if own is None else self._with_files(own, defaults.input, case, reading)
        if given is None or is_empty(given):
            if "input" not in case.not_missing:
                reading.report.error("missing-input", given or case.node, "a case needs 'input'")
            return None
        own = _question(given, given, reading)
        if own is None or defaults.prompts:
            return own
        return self._with_defaults(own, given, case, reading)

    def _of_prompt(self, prompt: SuitePrompt, case: WrittenCase, reading: Reading) -> tuple[Message, ...] | None:
        """The suite's prompt with the variables of a case; what is wrong is reported at the prompt."""
        from agentv.authoring.cases.prompts import filled

        own = reading.of_suite().reporting_to(reading.report.beside()).rendering(prompt.templated)
        messages = filled(prompt.sections, own) if prompt.sections else _question(prompt.node, prompt.node, own)
        for one in own.report.diagnostics:
            of_all = one.code == "unset-environment" or one.message.startswith(UNREADABLE)
            where = "" if of_all else f", in the case '{case.keys.id}'"
            reading.report.add(structs.replace(one, message=f"{one.message}{where}"))
        if messages is None:
            reading.report.leave_unrendered()
            return None
        return self._with_defaults(messages, prompt.node, case, reading)

    def _opening(self, case: WrittenCase, reading: Reading) -> tuple[Message, ...] | None:
        """The suite's `input`, then the case's own."""
        given = case.keys.input
        own = () if given is None or is_empty(given) else read_messages(given, "user", reading)
        before = self.defaults.input if case.keys.skip_defaults is not True else None
        if before is None or own is None or self.defaults.prompts:  # a prompt gets what the suite says before it
            return own
        shared = self._of_suite(before, reading)
        return None if shared is None else (*shared, *own)

    def _with_defaults(
        self, own: tuple[Message, ...], given: Node, case: WrittenCase, reading: Reading
    ) -> tuple[Message, ...] | None:
        """The messages with their files, after those of the suite, unless `skip_defaults` says otherwise."""
        with_own = own if case.has_turns else self._with_files(own, given, case, reading)
        if self.defaults.input is None or case.keys.skip_defaults is True or with_own is None:
            return with_own
        before = self._of_suite(self.defaults.input, reading)
        return None if before is None else (*before, *with_own)

    def _with_files(
        self, own: tuple[Message, ...], given: Node, case: WrittenCase, reading: Reading
    ) -> tuple[Message, ...] | None:
        """The messages with the case's files, else with the suite's."""
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

    def _of_suite(self, node: Node, reading: Reading) -> tuple[Message, ...] | None:
        return read_messages(node, "user", reading.of_suite())


def _question(node: Node, at: Node, reading: Reading) -> tuple[Message, ...] | None:
    """Messages that say something once their placeholders are filled in."""
    own = read_messages(node, "user", reading)
    if own is not None and reading.renders and not any(message.content for message in own):
        reading.report.error("missing-input", at, "'input' is empty after its placeholders are filled in")
        return None
    return own
