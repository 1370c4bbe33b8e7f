"""The state that scripted tools kept (AGENTS.md section 6): the work is graded, not the words about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, ClassVar, Literal

from agentv.assertions.evidence import excerpt
from agentv.assertions.json_compare import differences, shown
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.values.json_path import Missing, parse, read
from agentv.model.values.values import EMPTY, Json, JsonObject
from agentv.registry.fields import DeclaredAssertion, Doc, Issue, LoadedJson, Nonempty, Text

MOST_DIFFERENCES = 5


@dataclass(frozen=True, slots=True)
class ToolState(DeclaredAssertion):
    """The state that the functions of a scripted MCP server kept is as expected, or as the solution leaves it."""

    short: ClassVar[str | None] = "paths"
    options_first: ClassVar[bool] = True

    value: Annotated[LoadedJson | None, Doc("the expected JSON, inline or a path")] = None
    paths: Annotated[Mapping[str, Json], Doc("path in the state → expected value: orders.A-42.status: refunded")] = (
        field(default=EMPTY)
    )
    after: Annotated[Literal["solution"] | None, Doc("solution: the state equals the one after its calls")] = None
    path: Annotated[Text | None, Nonempty(), Doc("path in the state: orders[0].status; default: all of it")] = None
    server: Annotated[Text | None, Nonempty(), Doc("name of the server; default: the only one")] = None
    mode: Annotated[Literal["subset", "equal"], Doc("subset: objects may have more keys; equal: no more keys")] = (
        "subset"
    )

    def label(self) -> str:
        """The path and what is expected there."""
        if self.value is None:
            return (
                ", ".join(f"{path} is {shown(one)}" for path, one in self.paths.items()) or "as the solution leaves it"
            )
        wanted = self.value.path.rpartition("/")[2] if self.value.path else shown(self.value.value)
        return f"{self.path} is {wanted}" if self.path else wanted

    def validate(self) -> Iterable[Issue]:
        """An invalid path, a value that every object contains, and none or several expectations."""
        for option, path in (("path", self.path), *(("paths", one) for one in self.paths)):
            try:
                parse(path or "$")
            except ValueError as error:
                yield Issue((option,), str(error), "bad-path")
        if self.value is not None and self.value.value == {} and self.mode == "subset":
            yield Issue(
                ("value",),
                "every object has all of {}, so this checks nothing",
                hint="for an empty object, add mode: equal",
            )
        if sum((bool(self.paths), self.value is not None, self.after is not None)) != 1:
            yield Issue((), "'tool-state' needs one of 'value', 'paths' and 'after'", "missing-key")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare; lists must match item by item in either mode. Without scripted tools: an error."""
        found = self._state(context.tool_state)
        if isinstance(found, Grade):
            return found
        if self.after is not None:
            expected = self._state(context.solution_state)
            if isinstance(expected, Grade):
                return Grade.errored("no-tool-state", "the case has no solution with 'calls', so no state is expected")
            wanted = expected if self.path is None else read(parse(self.path), expected)
            if isinstance(wanted, Missing):
                return Grade.errored("no-tool-state", f"the solution leaves nothing there: {wanted.message}")
            return _compared(found, self.path, wanted, "equal", "what the solution leaves")
        if self.value is not None:
            wanted = self.value.value
            what = "the expected value" if isinstance(wanted, Mapping | list) else shown(wanted)
            return _compared(found, self.path, wanted, self.mode, what)
        grades = [_compared(found, path, one, self.mode, shown(one)) for path, one in self.paths.items()]
        passed = sum(one.passed for one in grades)
        checks = tuple(check for one in grades for check in one.checks)
        return Grade(passed / len(grades), passed == len(grades), checks)

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


def _compared(state: Json, path: str | None, expected: Json, mode: str, what: str) -> Grade:
    found = state if path is None else read(parse(path), state)
    verb = "is" if not isinstance(expected, Mapping | list) else "contains all of" if mode == "subset" else "equals"
    text = f"{path or 'the state'} {verb} {what}"
    if isinstance(found, Missing):
        return Grade.of(False, text, excerpt(found.message))
    wrong = tuple(islice(differences(expected, found, subset=mode == "subset"), MOST_DIFFERENCES))
    return Grade.of(not wrong, text, excerpt("; ".join(wrong)) if wrong else f"found {shown(found)}")
