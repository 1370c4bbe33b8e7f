"""Input of a case: its own messages, with the messages and attachments of its suite (SPEC sections 3 and 4)."""

from __future__ import annotations

from msgspec import Struct

from agentv.authoring.cases.defaults import CaseDefaults
from agentv.authoring.cases.matrix import Around
from agentv.authoring.cases.messages import read_files, read_messages, with_files
from agentv.authoring.cases.written_case import WrittenCase
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Node, Scalar, is_empty
from agentv.model.values.message import Message


class InputReader(Struct, frozen=True):
    """Reads the inputs of the cases of one suite. Returns None for an invalid one, which is reported."""

    defaults: CaseDefaults

    def read(self, case: WrittenCase, reading: Reading) -> tuple[Message, ...] | None:
        """The messages of a case, or those before its first turn."""
        return self._opening(case, reading) if case.has_turns else self._input(case, reading)

    def preamble(self, case: WrittenCase, reading: Reading) -> int:
        """Number of messages that the suite puts before those of a case in a conversation."""
        if case.keys.conversation_id is None or case.keys.skip_defaults or self.defaults.input is None:
            return 0
        return len(self._of_suite(self.defaults.input, reading) or ())

    def around(self, case: WrittenCase, reading: Reading) -> Around:
        """Puts what the suite says for all inputs around the messages of a prompt."""

        def around(messages: tuple[Message, ...], node: Node) -> tuple[Message, ...] | None:
            return self._with_defaults(messages, node, case, reading)

        return around

    def _input(self, case: WrittenCase, reading: Reading) -> tuple[Message, ...] | None:
        given, defaults = case.keys.input, self.defaults
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

    def _opening(self, case: WrittenCase, reading: Reading) -> tuple[Message, ...] | None:
        """The suite's `input`, then the case's own."""
        given = case.keys.input
        own = () if given is None or is_empty(given) else read_messages(given, "user", reading)
        before = self.defaults.input if not case.keys.skip_defaults else None
        if before is None or own is None or self.defaults.prompts:  # a prompt gets what the suite says before it
            return own
        shared = self._of_suite(before, reading)
        return None if shared is None else (*shared, *own)

    def _with_defaults(
        self, own: tuple[Message, ...], given: Node, case: WrittenCase, reading: Reading
    ) -> tuple[Message, ...] | None:
        """The messages with their files, after those of the suite, unless `skip_defaults` says otherwise."""
        with_own = own if case.has_turns else self._with_files(own, given, case, reading)
        if self.defaults.input is None or case.keys.skip_defaults or with_own is None:
            return with_own
        before = self._of_suite(self.defaults.input, reading)
        return None if before is None else (*before, *with_own)

    def _with_files(
        self, own: tuple[Message, ...], given: Node, case: WrittenCase, reading: Reading
    ) -> tuple[Message, ...] | None:
        """The messages with the case's files, else with the suite's."""
        files, shared = case.keys.input_files, self.defaults.input_files
        if files is None:
            attaches = shared is not None and not case.keys.skip_defaults and isinstance(given, Scalar)
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
