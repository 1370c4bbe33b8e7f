"""Assertions of a case: its own, those of its suite, and its criteria (SPEC section 7.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.authoring.assertions.judging import judges
from agentv.authoring.cases.context import CaseContext, WrittenCase
from agentv.authoring.cases.messages import read_criteria, read_files, read_messages, with_files
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredTurn
from agentv.authoring.fields.spellings import TURN
from agentv.authoring.fields.translation import translated
from agentv.authoring.source.files import shown
from agentv.authoring.source.nodes import Canonical, ListNode, MapNode, Node, Scalar, holds_placeholder, is_empty
from agentv.authoring.source.report import Report, Result
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry
from agentv.model.suite.conversation import Turn
from agentv.model.values.message import Block, Message
from agentv.model.values.values import Span
from agentv.registry.fields import DeclaredAssertion

Entries = Result[tuple[AssertionEntry, ...]]

_CHECKS = frozenset({"assert", "criteria", "rubrics"})
"""Keys that give a case something to check."""

_CHECKS_HINT = "add 'assert' or 'criteria'; 'show_only: true' in the suite only shows answers"


def read_shared(context: CaseContext, reading: Reading) -> Entries | None:
    """The assertions that the suite adds to each case, or None if they depend on a case's variables.

    Args:
        context: shared by all cases.
        reading: the suite's `Reading`, with the variables of all cases.
    """
    nodes = context.defaults.asserts
    reading = reading.with_rubric(context.defaults.options.rubric)
    if any(holds_placeholder(node) for node in nodes):
        return None
    own = reading.report.empty_copy()
    reader = structs.replace(reading, report=own, renders=False)
    found = _joined([context.assertions.entries(node, reader) for node in nodes])
    if context.assertions.renders:
        return None  # an included template has placeholders, which differ by case
    for one in own.diagnostics:
        reading.report.add(one)
    return found._replace(valid=not own.failed)


class CaseAssertions(Struct, frozen=True):
    """Reads the assertions of the cases of one suite.

    Attributes:
        shared: the assertions that the suite adds to each case; None if they depend on the case's variables.
    """

    context: CaseContext
    shared: Entries | None

    def read(
        self,
        case: WrittenCase,
        criteria: str | None,
        turns: tuple[Turn, ...] | None,
        reading: Reading,
        *,
        shared: bool = True,
    ) -> tuple[AssertionEntry, ...]:
        """Read the assertions of a case: `rubrics`, its own, `default_test`'s, the suite's (SPEC section 7.4).

        Args:
            case: the authored case.
            criteria: its criteria.
            turns: its turns; None if invalid.
            reading: the case's `Reading`.
            shared: the case's options do not change the assertions that the suite adds.
        """
        keys, assertions = case.keys, self.context.assertions
        parts: list[Entries] = []
        if keys.rubrics is not None:
            if is_empty(keys.rubrics):
                reading.report.error("missing-value", keys.rubrics, "'rubrics' is empty")
                rubrics = None
            else:
                rubrics = assertions.rubric_entry(keys.rubrics, keys.rubrics, reading)
            parts.append(Result((rubrics,)) if rubrics else Result((), valid=False))
        if keys.assert_ is not None:
            parts.append(assertions.entries(keys.assert_, reading))
        if not keys.skip_defaults and self.shared is not None and shared:
            parts.append(Result(self.shared.value))  # their errors are already reported, for the suite
        elif not keys.skip_defaults:
            of_suite = reading.of_suite()
            parts += [assertions.entries(node, of_suite) for node in self.context.defaults.asserts]
        found, valid = _joined(parts)
        of_turns = assertions_of(turns) if turns else ()
        # in AgentV, a case with `mode: conversation` is graded by assertions alone
        judged = criteria is not None and criteria.strip() != ""
        unjudged = not judged or keys.mode is not None
        if found or (of_turns and unjudged):
            if criteria is not None and found and not any(reads_criteria(entry) for entry in found):
                at = case.node.keys["criteria"]
                reading.report.warning("criteria-not-judged", at, "no assertion uses these criteria")
            check_entries(found, reading.report)
            if not (self.context.authored.show_only or counts_any((*found, *of_turns))):
                message = "this case checks nothing: every assertion has weight 0 and none is required"
                reading.report.error("checks-nothing", case.node, message)
        else:
            complete = valid and turns is not None and not case.not_missing & _CHECKS
            complete = complete and (self.shared is None or self.shared.valid)
            found = self._implied(case, reading, judged=judged) if complete else ()
        return tuple(map(_as_gate, found)) if self.context.authored.require_all else found

    def _implied(self, case: WrittenCase, reading: Reading, *, judged: bool) -> tuple[AssertionEntry, ...]:
        """The assertion that grades a case without assertions by its criteria."""
        if judged:
            entry = self.context.assertions.rubric_entry(None, case.keys.criteria or case.node, reading)
            return (entry,) if entry else ()
        if not self.context.authored.show_only:
            message = "this case checks nothing: it has no assertion and no criteria"
            reading.report.error("checks-nothing", case.node, message, hint=_CHECKS_HINT)
        return ()

    def turns(self, case: WrittenCase, reading: Reading) -> tuple[Turn, ...] | None:
        """The turns of a case; None if they are invalid, which is reported."""
        keys, places, report = case.keys, case.node.keys, reading.report
        valid = True
        asks = "prompt" if self.context.defaults.prompt is not None else None
        if self.context.defaults.prompts and keys.mode is None:  # with AgentV's 'mode', prompts go before the turns
            asks = "prompts"
        if asks is not None:
            message = f"a case with 'turns' defines its own questions, but the suite has '{asks}' as well"
            report.error("bad-turn", places["turns"], message, hint="keep one of them")
            valid = False
        if keys.mode is not None and not self.context.defaults.prompts:
            canonical = "turns" if keys.aggregation is not None else "aggregation: mean"
            report.older("mode: conversation", canonical, places["mode"])
        if keys.turns is None:
            if "turns" not in case.not_missing:
                message = "'mode: conversation' needs 'turns', a list of questions"
                report.error("missing-key", places["mode"], message)
            return None
        if not is_empty(keys.expected_output):
            message = (
                "a case with 'turns' has one answer per turn, so it is unclear which one 'expected_output' belongs to"
            )
            hint = "move it to the turn it belongs to"
            report.error("reference-beside-turns", places["expected_output"], message, hint=hint)
            valid = False
        if case.keys.input_files is not None:
            files = read_files(case.keys.input_files, reading)
        else:
            shared = None if case.keys.skip_defaults is True else self.context.defaults.input_files
            files = Result[list[Block]]([]) if shared is None else read_files(shared, reading.of_suite())
        turns = self._turns(keys.turns, files.value, reading)
        first = turns.value[0].input if turns.value else ()
        attached = len(first) == 1 and isinstance(first[0].content, tuple)
        if keys.input_files is not None and files.value and turns.value and not attached:
            message = "'input_files' needs a first turn whose input is a text"
            report.error(
                "bad-value", keys.input_files, message, hint="write blocks with 'type: file' into the messages"
            )
            valid = False
        return turns.value if valid and files.valid and turns.valid else None

    def _turns(self, node: Node, files: Iterable[Block], reading: Reading) -> Result[tuple[Turn, ...]]:
        """Read a list of turns. Invalid turns are reported and left out.

        Args:
            node: the value of `turns`.
            files: the case's files, which are attached to the first turn if its input is plain text.
            reading: the case's `Reading`.
        """
        if not isinstance(node, ListNode):
            reading.report.unfit(node, "'turns' must be a list of turns")
            return Result((), valid=False)
        if not node.items:
            reading.report.error("missing-value", node, "'turns' is empty; it needs at least one turn")
            return Result((), valid=False)
        turns = (self._turn(item, number, reading) for number, item in enumerate(node.items, 1))
        valid = [turn for turn in turns if turn is not None]
        if valid and isinstance(node.items[0], MapNode):
            valid[0] = replace(valid[0], input=with_files(valid[0].input, files))
        return Result(tuple(valid), len(valid) == len(node.items))

    def _turn(self, node: Node, number: int, reading: Reading) -> Turn | None:
        report = reading.report
        what = f"turn {number}"
        if not isinstance(node, MapNode):
            hint = "write '- input: …'" if isinstance(node, Scalar) else None
            report.unfit(node, f"{what} must be a mapping with 'input'", "bad-turn", hint=hint)
            return None
        reading = reading.part()
        written = translated(node, TURN, reading, "a turn")
        authored: AuthoredTurn = shape_of(AuthoredTurn).read(written.items, written, reading, "a turn")
        expected = authored.expected_output
        messages = _input(authored.input, written, what, reading)
        reference = () if expected is None or is_empty(expected) else read_messages(expected, "assistant", reading)
        criteria = read_criteria(authored.criteria, reading).value
        if authored.assert_ is not None and not is_empty(authored.assert_):
            entries = self.context.assertions.entries(authored.assert_, reading).value
        elif criteria is None or not criteria.strip():
            entries = ()
        else:
            entry = self.context.assertions.rubric_entry(None, authored.criteria, reading)
            entries = (entry,) if entry else ()
        if criteria is not None and entries and not any(reads_criteria(entry) for entry in entries):
            at = written.keys["criteria"]
            reading.report.warning("criteria-not-judged", at, f"no assertion uses the criteria of {what}")
        if messages is None or reference is None or not reading.report.valid:
            return None
        named = [replace(entry, settings=replace(entry.settings, name=f"{what}: {entry.name}")) for entry in entries]
        return Turn(messages, tuple(named), criteria, reference)


def _joined(parts: Sequence[Entries]) -> Entries:
    found: tuple[AssertionEntry, ...] = ()
    for part in parts:
        found += part.value  # copies nothing if only one part has entries
    return Result(found, all(part.valid for part in parts))


def _as_gate(entry: AssertionEntry) -> AssertionEntry:
    """The entry as a gate, for `require_all`, unless its weight is 0 or it already sets `required`.

    A set without a threshold would take the case's, which is 0, and a set with threshold 0 would pass everything. So
    all entries of such a set become gates.
    """
    inner: tuple[AssertionEntry, ...] = entry.inner
    if inner and not getattr(entry.assertion, "threshold", None):
        from dataclasses import replace  # plugins' assertion sets are dataclasses too

        whole: Any = entry.assertion
        entry = structs.replace(entry, assertion=replace(whole, assert_=tuple(map(_as_gate, inner))))
    settings = entry.settings
    if settings.required or settings.weight == 0:
        return entry
    return structs.replace(entry, settings=structs.replace(settings, required=True))


COMPARED = 50
"""Maximum number of entries of one type that are compared with each other; longer lists are generated by programs."""


def check_entries(entries: Sequence[AssertionEntry], report: Report, *, are_alternatives: bool = False) -> None:
    """Warn about dubious entries in a list and in its nested sets. Runs for every case.

    Args:
        entries: the entries of one list.
        report: receives warnings.
        are_alternatives: not all entries must pass, so they may contradict each other.
    """
    for entry in entries:
        if entry.settings is not DEFAULTS and entry.settings.min_score == 0:
            message = f"'{entry.name}' passes with every score: its min_score is 0"
            report.warning("always-passes", entry.span, message, hint="to show it without counting it, use weight: 0")
        if not entry.settings.weight and entry.settings.required == 0 and entry.settings.required is not False:
            message = f"'{entry.name}' can neither fail nor count: its weight and its 'required' are 0"
            report.warning("always-passes", entry.span, message, hint="remove 'required' to only show it")
        inside = entry.inner
        if inside:
            mark = getattr(entry.assertion, "threshold", None)
            check_entries(inside, report, are_alternatives=isinstance(mark, float) and mark < 1)
    if len(entries) > 1 and not are_alternatives:
        by_type: dict[str, list[AssertionEntry]] = {}
        for entry in entries:
            earlier = by_type.get(entry.type)
            if earlier is None:
                by_type[entry.type] = [entry]
            elif len(earlier) < COMPARED:
                any(_compare(other, entry, report) for other in earlier)  # one warning per entry
                earlier.append(entry)


def _compare(first: AssertionEntry, second: AssertionEntry, report: Report) -> bool:
    """Warn if two entries of one type are duplicates or contradict each other. Return whether they do."""
    ours, theirs = first.settings, second.settings
    if first.assertion != second.assertion or ours.transform != theirs.transform:
        return False
    if ours.negate != theirs.negate:
        message = f"no answer passes both this and '{first.name}'{_place(first.span, second.span)}"
        report.warning("contradiction", second.span, message)
        return True
    if ours.name != theirs.name:
        return False
    place = _place(first.span, second.span)
    report.warning(
        "duplicate-assertion", second.span, f"'{second.name}' counts twice{place and f': it is also{place}'}"
    )
    return True


def _place(span: Span | None, seen_from: Span | None) -> str:
    """The position of an entry, such as ` at templates/safe.yaml:4`; "" if it is `seen_from` itself."""
    return "" if span is None or span == seen_from else f" at {shown(span.file)}:{span.line}"


def assertions_of(turns: tuple[Turn, ...]) -> tuple[AssertionEntry, ...]:
    """The assertions of all turns, in order."""
    return tuple(entry for turn in turns for entry in turn.assertions)


def reads_criteria(entry: AssertionEntry) -> bool:
    """Whether an entry, or one nested in it, uses the case's criteria. Custom types are assumed to."""
    if judges(entry):
        return True
    return any(
        not isinstance(one.assertion, DeclaredAssertion) or one.assertion.reads_criteria for one in entry.nested()
    )


def counts_any(entries: tuple[AssertionEntry, ...]) -> bool:
    """Whether one of the assertions affects the verdict, by its weight or as a gate that a score can fail."""
    return any(entry.settings.weight or entry.settings.required for entry in entries)


def _input(given: Node | None, turn: Canonical, what: str, reading: Reading) -> tuple[Message, ...] | None:
    if given is None or is_empty(given):
        if "input" not in turn.not_missing:
            reading.report.error("missing-input", given or turn, f"{what} needs 'input'")
        return None
    messages = read_messages(given, "user", reading)
    if messages and reading.renders and not any(message.content for message in messages):
        message = f"'input' of {what} is empty after its placeholders are filled in"
        reading.report.error("missing-input", given, message)
    return messages
