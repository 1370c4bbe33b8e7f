"""The state that scripted tools kept (AGENTS.md section 6): the work is graded, not the words about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, ClassVar, Literal

from agentv.assertions.evidence import excerpt
from agentv.assertions.json_compare import differences, shown
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.values.json_path import Missing, parse, read
from agentv.model.values.values import Json, JsonObject
from agentv.registry.fields import DeclaredAssertion, Doc, Issue, LoadedJson, Nonempty, Text

MOST_DIFFERENCES = 5


@dataclass(frozen=True, slots=True)
class ToolState(DeclaredAssertion):
    """The state that the functions of a scripted MCP server kept contains a value, or is equal to it."""

    short: ClassVar[str | None] = None

    value: Annotated[LoadedJson, Doc("the expected JSON, inline or a path")]
    path: Annotated[Text | None, Nonempty(), Doc("path in the state: orders[0].status; default: all of it")] = None
    server: Annotated[Text | None, Nonempty(), Doc("name of the server; default: the only one")] = None
    mode: Annotated[Literal["subset", "equal"], Doc("subset: objects may have more keys; equal: no more keys")] = (
        "subset"
    )

    def label(self) -> str:
        """The path and what is expected there."""
        wanted = self.value.path.rpartition("/")[2] if self.value.path else shown(self.value.value)
        return f"{self.path} is {wanted}" if self.path else wanted

    def validate(self) -> Iterable[Issue]:
        """An invalid path, or a value that every object contains."""
        if self.path is not None:
            try:
                parse(self.path)
            except ValueError as error:
                yield Issue(("path",), str(error), "bad-path")
        if self.value.value == {} and self.mode == "subset":
            yield Issue(("value",), "every object has all of {}, so this checks nothing", hint="mode: equal")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare; lists must match item by item in either mode. Without scripted tools: an error."""
        found = self._state(context.tool_state)
        if isinstance(found, Grade):
            return found
        place = self.path or "the state"
        text = f"{place} {'contains all of' if self.mode == 'subset' else 'equals'} the expected value"
        value = found if self.path is None else read(parse(self.path), found)
        if isinstance(value, Missing):
            return Grade.of(False, text, excerpt(value.message))
        wrong = tuple(islice(differences(self.value.value, value, subset=self.mode == "subset"), MOST_DIFFERENCES))
        return Grade.of(not wrong, text, excerpt("; ".join(wrong)) if wrong else f"found {shown(value)}")

    def _state(self, states: JsonObject) -> Json | Grade:
        if not states:
            return Grade.errored("no-tool-state", "the case has no scripted tools, so there is no state to check")
        names = ", ".join(states)
        if self.server is None:
            if len(states) == 1:
                return next(iter(states.values()))
            return Grade.errored("no-tool-state", f"the case has several servers ({names}); choose one with 'server'")
        if self.server not in states:
            return Grade.errored("no-tool-state", f"the case has no server '{self.server}', only {names}")
        return states[self.server]
