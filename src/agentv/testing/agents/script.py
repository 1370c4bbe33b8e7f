"""`AgentScript`: what a model answers to a coding agent, step by step in each conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec import structs

from agentv.model.values.message import ToolCall
from agentv.testing.agents.conversation import answers_in, history_of, turns_of
from agentv.testing.agents.offered_tools import OfferedTool, offered_tools
from agentv.testing.agents.tool_mapping import SEARCH_ID, NotOfferedError, as_offered
from agentv.testing.calls import ModelCall
from agentv.testing.steps import HOLDERS, Answer, Status, Step, Together, step_of

_SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""What mini-swe-agent prints by its shell to end: it takes no text for an answer."""


_SEARCHES = 10
_SEARCH_WAIT_S = 0.1


class AgentScript:
    """The reply of a `ModelServer` to coding agents: the next step of each conversation.

    The steps are counted in the conversation itself: the request holds the model's answers so far. So agents that run
    at once, sub-agents and resumed sessions each have their own place, and a retry gets the step that it asked for.
    When the steps are used up, the last one comes again. Errors and faults come once, then the retry gets the next
    step.

    Tools are called by the names of `tool_names` (`shell`, `read`, `write`, `edit`, `subagent`, `skill`, …, or
    `server.tool` of MCP) with the arguments `command`, `path`, `content`, `old`, `new`, `prompt`, `agent`, `name`;
    each call becomes one of a tool that the request offers. Where an agent has none to write or edit files, its shell
    does it. Its own names and arguments work too.

    Args:
        steps: texts and steps such as `use_tool("shell", command="ls")`.
        when: text of a message → the steps from that message on, for sub-agents and further turns.
        side: answer to calls that offer no tools, where the steps call some: titles, summaries.
    """

    def __init__(
        self,
        steps: Sequence[str | Step],
        *,
        when: Mapping[str, Sequence[str | Step]] | None = None,
        side: str | Step = "An answer beside the script.",
    ) -> None:
        self._steps = _Steps.of(steps)
        self._when = {text: _Steps.of(given) for text, given in (when or {}).items()}
        self._side = step_of(side)
        self._given: Counter[str] = Counter()

    def __call__(self, call: ModelCall) -> Step:
        """The step for a call."""
        tools = offered_tools(call.body)
        steps, answered = self._place(call)
        if not tools and steps.call_tools:
            return self._side
        step = self._step(steps, answered, call)
        try:
            return _fitted(step, tools, call)
        except NotOfferedError as error:
            return Status(400, str(error))

    def _place(self, call: ModelCall) -> tuple[_Steps, int]:
        """The steps of the conversation, and the number of answers since they began."""
        turns = turns_of(call.body)
        steps, begin = self._steps, 0
        for number, turn in enumerate(turns):
            found = next((self._when[text] for text in self._when if text in turn.text), None)
            if found is not None and found is not steps:
                steps, begin = found, number
        return steps, answers_in(turns[begin:])

    def _step(self, steps: _Steps, answered: int, call: ModelCall) -> Step:
        faults, answer = steps.places[min(answered, len(steps.places) - 1)]
        if not faults:
            return answer or self._side
        history = history_of(call)
        given = self._given[history]
        self._given[history] += 1
        if given < len(faults) or answer is None:
            return faults[min(given, len(faults) - 1)]
        return answer


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps by the number of answers before them: the faults that come first, then the answer."""

    places: tuple[tuple[tuple[Step, ...], Step | None], ...]
    call_tools: bool

    @classmethod
    def of(cls, given: Sequence[str | Step]) -> _Steps:
        if isinstance(given, str) or not given:
            raise ValueError("an AgentScript needs a list of at least one step")
        places: list[tuple[tuple[Step, ...], Step | None]] = []
        faults: list[Step] = []
        steps = [step_of(one) for one in given]
        for step in steps:
            if isinstance(step, Answer | Together):
                places.append((tuple(faults), step))
                faults = []
            else:
                faults.append(step)
        if faults:
            places.append((tuple(faults), None))
        return cls(tuple(places), any(_answer(step).tool_calls for step in steps))


def _answer(step: Step) -> Answer:
    if isinstance(step, Answer):
        return step
    return step.answer if isinstance(step, HOLDERS) else Answer()


def _fitted(step: Step, tools: Sequence[OfferedTool], call: ModelCall) -> Step:
    """The step with its calls as the request offers them."""
    if isinstance(step, HOLDERS):
        return replace(step, answer=_fitted_answer(step.answer, tools, call))
    return _fitted_answer(step, tools, call) if isinstance(step, Answer) else step


def _fitted_answer(step: Answer, tools: Sequence[OfferedTool], call: ModelCall) -> Answer:
    if step.tool_calls:
        calls = tuple(as_offered(one, tools, call.text) for one in step.tool_calls)
        searches = tuple(one for one in calls if (one.id or "").startswith(SEARCH_ID))
        if not searches:
            return replace(step, tool_calls=calls)
        return _search(searches, call)
    if _SUBMIT in call.text and tools and step.refusal is None:
        return replace(step, tool_calls=(_submitted(step.text, tools, call.text),))
    return step


def _search(searches: Sequence[ToolCall], call: ModelCall) -> Answer:
    """The agent shall search; again if its server of tools has not started yet."""
    body = msgspec.json.encode(call.body)
    before = max(body.count(f'"{one.id}_'.encode()) for one in searches) // 2  # each search, and its result
    if before >= _SEARCHES:
        raise NotOfferedError(f"the agent searched for {searches[0].arguments['query']!r}, and found no such tool")
    calls = tuple(structs.replace(one, id=f"{one.id}_{before}") for one in searches)
    return Answer(tool_calls=calls, delay_s=before * _SEARCH_WAIT_S)


def _submitted(text: str, tools: Sequence[OfferedTool], said: str) -> ToolCall:
    command = f"cat <<'ANSWER'\n{_SUBMIT}\n{text}\nANSWER"
    return as_offered(ToolCall("shell", {"command": command}), tools, said)
