"""`AgentScript`: a model's scripted answers to a coding agent, written in Python, YAML or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, structs

from agentv.model.values.message import ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.testing.agent_tools import SEARCH_ID, NotOfferedError, OfferedTool, as_offered, offered_tools
from agentv.testing.steps import (
    ANSWER_STEPS,
    DEFAULT_USAGE,
    TURNS,
    Answer,
    ClosedConnection,
    Hang,
    ModelCall,
    Status,
    Step,
    Together,
    step_of,
)

_SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""Line that mini-swe-agent prints in its shell to finish, as it accepts no plain text as an answer."""


T = TypeVar("T")

_SEARCHES = 10
_SEARCH_WAIT_S = 0.1


class AgentScript:
    """A `ModelServer` reply for coding agents: the next step of each conversation.

    The position in the script is computed from the conversation itself, as a request contains the model's answers so
    far. Concurrent agents, sub-agents and resumed sessions therefore each have their own position, and a retry gets the
    same step again. The last step is repeated. Errors and faults are sent once; the retry gets the next step.

    Tools are called by the names of `tool_names` (`shell`, `read`, `write`, `edit`, `subagent`, `skill`, …, or
    `server.tool` of MCP) with the arguments `command`, `path`, `content`, `old`, `new`, `prompt`, `agent`, `name`;
    each call is translated to a tool that the request offers. If an agent has no tool to write or edit files, its shell
    is used. The agent's own tool names and arguments work too.

    Args:
        steps: texts and steps such as `use_tool("shell", command="ls")`.
        when: text in a message → the steps from that message on, for sub-agents and further turns.
        side: answer to calls without tools, such as those for titles and summaries, if the steps call tools.
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
            if isinstance(step, ANSWER_STEPS):
                return replace(step, answer=_translated(step.answer, tools, call))
            return _translated(step, tools, call) if isinstance(step, Answer) else step
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
        # count the model's answers, each of which may be several messages in a row
        own = turns[begin:]
        pairs = zip((Turn(answer=False), *own), own, strict=False)
        return steps, sum(turn.answer and not before.answer for before, turn in pairs)

    def _step(self, steps: _Steps, answered: int, call: ModelCall) -> Step:
        faults, answer = steps.places[min(answered, len(steps.places) - 1)]
        if not faults:
            return answer or self._side
        # a request and its retry have the same digest
        messages = [call.body.get(key) for key in TURNS]
        history = sha256(msgspec.json.encode(messages, order="sorted")).hexdigest()
        given = self._given[history]
        self._given[history] += 1
        if given < len(faults) or answer is None:
            return faults[min(given, len(faults) - 1)]
        return answer


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps by the number of preceding answers: at each place the faults to send first, then the answer."""

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
        answers = (step.answer if isinstance(step, ANSWER_STEPS) else step for step in steps)
        return cls(tuple(places), any(isinstance(one, Answer) and one.tool_calls for one in answers))


def _translated(step: Answer, tools: Sequence[OfferedTool], call: ModelCall) -> Answer:
    """The answer with its calls translated to the tools that the request offers."""
    if step.tool_calls:
        calls = tuple(as_offered(one, tools, call.text) for one in step.tool_calls)
        searches = tuple(one for one in calls if (one.id or "").startswith(SEARCH_ID))
        if not searches:
            return replace(step, tool_calls=calls)
        return _search(searches, call)
    if _SUBMIT in call.text and tools and step.refusal is None:
        shell = ToolCall("shell", {"command": f"cat <<'ANSWER'\n{_SUBMIT}\n{step.text}\nANSWER"})
        return replace(step, tool_calls=(as_offered(shell, tools, call.text),))
    return step


def _search(searches: Sequence[ToolCall], call: ModelCall) -> Answer:
    """An answer that has the agent search for tools, again if its MCP server has not started yet."""
    body = msgspec.json.encode(call.body)
    before = max(body.count(f'"{one.id}_'.encode()) for one in searches) // 2  # a call and a result per search
    if before >= _SEARCHES:
        raise NotOfferedError(f"the agent searched for {searches[0].arguments['query']!r}, and found no such tool")
    calls = tuple(structs.replace(one, id=f"{one.id}_{before}") for one in searches)
    return Answer(tool_calls=calls, delay_s=before * _SEARCH_WAIT_S)


class _Script(Struct, frozen=True, forbid_unknown_fields=True):
    steps: Annotated[list[Any], Meta(min_length=1)]
    when: dict[str, Annotated[list[Any], Meta(min_length=1)]] = {}
    side: Any = None


class _Fault(Struct, frozen=True, forbid_unknown_fields=True):
    fault: Literal["hang", "closed-connection"]


class _ScriptedStatus(Struct, frozen=True, forbid_unknown_fields=True):
    status: int
    message: str = ""
    retry_after: float | str | None = None


class _ScriptedAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer. `tool` with its arguments beside it becomes one of `tools` before decoding."""

    text: str = ""
    reasoning: str = ""
    tools: list[dict[str, Any]] = []
    usage: dict[str, Any] | None = None
    delay_s: float = 0.0
    finish_reason: str | None = None
    refusal: str | None = None


def read_script(path: Path) -> AgentScript:
    """The script in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a script; the message names the position.
    """
    import yaml

    try:
        value = yaml.safe_load(path.read_bytes())
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error
    return script_from_json(value)


def script_from_json(value: Any) -> AgentScript:
    """The script in parsed YAML or JSON.

    Raises:
        ValueError: the data is malformed; the message names the position.
    """
    script = _decoded(value if isinstance(value, Mapping) else {"steps": value}, _Script, "the script")
    when = {text: _read_steps(steps, f"when '{text}'") for text, steps in script.when.items()}
    more = {} if script.side is None else {"side": _read_step(script.side, "side")}
    return AgentScript(_read_steps(script.steps, "steps"), when=when, **more)


def _read_steps(values: Sequence[Any], where: str) -> list[Step]:
    return [_read_step(one, f"step {number} of {where}") for number, one in enumerate(values, 1)]


def _read_step(value: Any, where: str) -> Step:
    if isinstance(value, str):
        return Answer(value)
    keys = value if isinstance(value, Mapping) else {}
    if "fault" in keys:
        return Hang() if _decoded(value, _Fault, where).fault == "hang" else ClosedConnection()
    if "status" in keys:
        refused = _decoded(value, _ScriptedStatus, where)
        return Status(refused.status, refused.message, refused.retry_after)
    if "tool" in keys:
        beside = {key: one for key, one in value.items() if key in _ScriptedAnswer.__struct_fields__}
        value = {**beside, "tools": [{key: one for key, one in value.items() if key not in beside}]}
    said = _decoded(value, _ScriptedAnswer, where)
    if not all(isinstance(one.get("tool"), str) for one in said.tools):
        raise ValueError(f"{where}: each of 'tools' needs the name of a 'tool'")
    return Answer(
        said.text,
        tuple(map(_read_call, said.tools)),
        said.finish_reason,
        DEFAULT_USAGE if said.usage is None else TokenUsage.from_json(said.usage),
        said.delay_s,
        said.refusal,
        reasoning=said.reasoning,
    )


def _read_call(value: Mapping[str, Json]) -> ToolCall:
    """Decode `{tool: NAME, …}`, with the arguments beside the name or under `arguments`."""
    given = value.get("arguments")
    beside = {key: one for key, one in value.items() if key not in ("tool", "arguments")}
    return ToolCall(str(value["tool"]), {**beside, **(given if isinstance(given, Mapping) else {})})


def _decoded(value: Any, into: type[T], where: str) -> T:
    try:
        return msgspec.convert(value, into)
    except msgspec.ValidationError as error:
        raise ValueError(f"{where}: {error}") from error


_ANSWERS = frozenset({"reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call"})


@dataclass(frozen=True, slots=True)
class Turn:
    """One message, or one item of OpenAI's Responses API.

    Attributes:
        answer: whether the model wrote it.
        text: text of a message to the model; "" for answers and tool results.
    """

    answer: bool
    text: str = ""


def turns_of(body: JsonObject) -> tuple[Turn, ...]:
    """The messages of a request in their order."""
    given = next((body[key] for key in TURNS if key in body), ())
    if isinstance(given, str):
        return (Turn(answer=False, text=given),)
    if not isinstance(given, Sequence):
        return ()
    return tuple(_turn(one) for one in given if isinstance(one, Mapping))


def _turn(message: JsonObject) -> Turn:
    role, kind = message.get("role"), message.get("type")
    if role in ("assistant", "model") or kind in _ANSWERS:
        return Turn(answer=not _searches(message))
    if role == "tool" or (isinstance(kind, str) and kind != "message"):
        return Turn(answer=False)
    content = message.get("content", message.get("parts"))
    blocks = content if isinstance(content, Sequence) and not isinstance(content, str) else [content]
    # skips tool results, whose text is one level deeper
    texts = (block.get("text") if isinstance(block, Mapping) else block for block in blocks)
    return Turn(answer=False, text="\n".join(one for one in texts if isinstance(one, str)))


def _searches(message: JsonObject) -> bool:
    """Whether a message is a tool search that the server added to the script."""
    blocks = message.get("content")
    ids = [block.get("id") for block in blocks if isinstance(block, Mapping)] if isinstance(blocks, Sequence) else []
    return any(isinstance(one, str) and one.startswith(SEARCH_ID) for one in ids)
