"""`turns`: the questions of one case, and what grades each answer (SPEC section 4)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.assertions.entries import AssertionReader
from agentv.authoring.cases.case_assertions import reads_criteria
from agentv.authoring.cases.context import CaseDefaults, WrittenCase
from agentv.authoring.cases.messages import read_criteria, read_files, read_messages, with_files
from agentv.authoring.fields import translation
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredTurn
from agentv.authoring.source.nodes import Canonical, ListNode, MapNode, Node, Scalar, is_empty
from agentv.authoring.source.report import Result
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.conversation import Turn
from agentv.model.values.message import Block, Message


class TurnReader(Struct, frozen=True):
    """Reads the turns of the cases of one suite.

    Attributes:
        assertions: reads the lists of turns.
        defaults: of the suite.
    """

    assertions: AssertionReader
    defaults: CaseDefaults

    def read(self, case: WrittenCase, reading: Reading) -> tuple[Turn, ...] | None:
        """The turns of a case; None where something is wrong with them, which is reported."""
        keys, places, report = case.keys, case.node.keys, reading.report
        valid = True
        asks = "prompt" if self.defaults.prompt is not None else None
        if self.defaults.prompts and keys.mode is None:  # with AgentV's 'mode', prompts go before the turns
            asks = "prompts"
        if asks is not None:
            message = f"a case with 'turns' defines its own questions, but the suite has '{asks}' as well"
            report.error("bad-turn", places["turns"], message, hint="keep one of them")
            valid = False
        if keys.mode is not None and not self.defaults.prompts:
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
        files = self._files(case, reading)
        turns = self._turns(keys.turns, files.value, reading)
        if keys.input_files is not None and files.value and turns.value and not _has_files(turns.value[0]):
            message = "'input_files' needs a first turn whose input is a text"
            report.error(
                "bad-value", keys.input_files, message, hint="write blocks with 'type: file' into the messages"
            )
            valid = False
        return turns.value if valid and files.valid and turns.valid else None

    def _files(self, case: WrittenCase, reading: Reading) -> Result[list[Block]]:
        """The files of the case, else those of its suite."""
        if case.keys.input_files is not None:
            return read_files(case.keys.input_files, reading)
        shared = None if case.keys.skip_defaults is True else self.defaults.input_files
        return Result[list[Block]]([]) if shared is None else read_files(shared, reading.of_suite())

    def _turns(self, node: Node, files: Iterable[Block], reading: Reading) -> Result[tuple[Turn, ...]]:
        """The turns of a list; what is wrong is reported and left out.

        Args:
            node: the value of `turns`.
            files: what is attached to the case; it goes to the first turn, if that is a plain text.
            reading: of the case.
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
        written, shape = translation.turn(node, reading), shape_of(AuthoredTurn)
        authored = shape.decode(written.items, written, reading, "a turn")
        if authored is INVALID:
            authored = shape.unread(written.items)
        turn = self._built(authored, written, what, reading)
        return turn if reading.report.valid else None

    def _built(self, authored: AuthoredTurn, written: Canonical, what: str, reading: Reading) -> Turn | None:
        expected = authored.expected_output
        messages = _input(authored.input, written, what, reading)
        reference = () if expected is None or is_empty(expected) else read_messages(expected, "assistant", reading)
        criteria = read_criteria(authored.criteria, reading).value
        entries = self._entries(authored, criteria, reading)
        if criteria is not None and entries and not any(reads_criteria(entry) for entry in entries):
            at = written.keys["criteria"]
            reading.report.warning("criteria-not-judged", at, f"no assertion uses the criteria of {what}")
        if messages is None or reference is None:
            return None
        return Turn(messages, tuple(_named(entry, what) for entry in entries), criteria, reference)

    def _entries(self, authored: AuthoredTurn, criteria: str | None, reading: Reading) -> tuple[AssertionEntry, ...]:
        """The turn's own assertions; without any, its criteria are judged."""
        if authored.assert_ is not None and not is_empty(authored.assert_):
            return self.assertions.entries(authored.assert_, reading).value
        if criteria is None or not criteria.strip():
            return ()
        entry = self.assertions.judged(None, authored.criteria, reading)
        return (entry,) if entry else ()


def _has_files(turn: Turn) -> bool:
    """Whether the files of the case were put before the text of a turn."""
    return len(turn.input) == 1 and isinstance(turn.input[0].content, tuple)


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


def _named(entry: AssertionEntry, what: str) -> AssertionEntry:
    """The entry with a name that says which answer it grades."""
    return replace(entry, settings=replace(entry.settings, name=f"{what}: {entry.name}"))
