"""Read the answer in an object of an agent framework or SDK by its shape, without imports (AGENTS.md section 9).

pydantic-ai's `AgentRunResult`, the OpenAI Agents SDK's `RunResult`, CrewAI's `CrewOutput`, smolagents' `RunResult`,
LangGraph's state, messages of LangChain and pydantic-ai, events of Google's ADK, and replies of the SDKs of OpenAI,
Anthropic and Google. Results of frameworks are converted to messages, and these to a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import structs
from msgspec.structs import replace

from agentv.extensions.agents.traces.messages import trace_of_messages
from agentv.extensions.agents.traces.values import first, items, mapping, number, string, text_of, tokens_of
from agentv.model.values.json_text import compact, parse
from agentv.model.values.json_text import plain as bounded
from agentv.model.values.response import STRUCTURED, CallFailure, Failure, TargetResponse
from agentv.model.values.trace import MessageStep, Step, ToolCallStep, Trace, UsageStep
from agentv.user_code.guard import attempt
from agentv.user_code.workers.messages import plain


class _Run(NamedTuple):
    """An agent's run: its output, its conversation, and the error that invalidates it."""

    output: Any
    messages: Sequence[Any]
    agent: str = ""
    model: str = ""
    usage: Any = None
    error: Failure | None = None


def answer_in(value: Any, question: str) -> TargetResponse | Failure | None:
    """Return the answer in a function's return value, or None if that is not an object of a known framework.

    A Failure says why the run gave no answer, with its trace, or why the object cannot be read.

    Args:
        value: return value that is neither text nor an answer in agentv's own form.
        question: last message that the function was given. A state may also contain the messages of earlier turns.
    """
    found = attempt(lambda one: _read(one, question), value, "target-raised", "it")
    if isinstance(found, Failure) and found.code == "target-raised":
        message = f"{_described(value)} cannot be read by this version of agentv: {found.message}"
        return Failure("bad-answer", message)
    return found


def _read(value: Any, question: str) -> TargetResponse | Failure | None:
    kinds = {kind.__name__ for kind in type(value).__mro__}
    fitting = (read for kind, names, read in _READERS if kind in kinds and all(hasattr(value, one) for one in names))
    read = next(fitting, None)
    if read is not None:
        found = read(value)
        return _answer(found) if isinstance(found, _Run) else found
    if isinstance(value, Mapping):
        return _state(value, question) if _are_messages(value.get("messages")) else None
    rows = value if isinstance(value, list | tuple) else [value]
    if _are_messages(rows):
        return _answer(_messages(rows, question))
    if type(value).__module__.partition(".")[0] not in _KNOWN_PACKAGES:
        return None
    return Failure("bad-answer", f"{_described(value)} is not what a run returns; return the result of the run")


def _answer(run: _Run) -> TargetResponse | Failure:
    trace = trace_of_messages([bounded(row, cut=True) for row in run.messages], "returned") if run.messages else Trace()
    if isinstance(trace, Failure):
        return trace
    steps = trace.steps
    if run.usage is not None:
        steps = (*steps, UsageStep(None, tokens_of(run.usage), number(mapping(run.usage).get("cost"))))
    trace = replace(trace, steps=priced(steps, run.model), agent=run.agent)
    output, metadata = run.output, {}
    if output is not None and not isinstance(output, str):
        output, metadata = compact(bounded(plain(output))), {STRUCTURED: True}
    answer = TargetResponse(output, trace=trace, metadata=metadata)
    if run.error is not None:
        return CallFailure(run.error.code, run.error.message, response=replace(answer, output=None))
    return answer


def priced(steps: Iterable[Step], model: str = "") -> tuple[Step, ...]:
    """Return the steps, with costs from the price list for model calls that do not report one.

    Args:
        steps: steps of a trace.
        model: model of the calls that do not name theirs.
    """
    found: list[Step] = []
    for step in steps:
        if not isinstance(step, UsageStep):
            found.append(step)
            continue
        from agentv.targets.model_api.prices import cost_of

        named = step.model or model
        cost = cost_of("", named, step.tokens) if step.cost_usd is None and named else step.cost_usd
        found.append(replace(step, model=named or None, cost_usd=cost))
    return tuple(found)


def _openai_agents(result: Any) -> _Run:
    given = result.input if isinstance(result.input, list) else [result.input]
    new_items = plain(result.to_input_list())[len(given) :]
    usages: dict[str, Any] = {}
    for response in result.raw_responses:
        row = plain(response)
        ids = [string(first(mapping(one), "call_id", "id")) for one in items(mapping(row).get("output"))]
        usages |= {one: mapping(row).get("usage") for one in ids[:1]}
    rows: list[Any] = [{"role": "user", "content": given[-1]} if isinstance(given[-1], str) else plain(given[-1])]
    for row in new_items:
        usage = usages.pop(string(first(row, "call_id", "id")), None)
        rows += [row] if usage is None else [{"role": "assistant", "usage": usage}, row]
    agent = result.last_agent
    model = getattr(agent, "model", None)
    name = model if isinstance(model, str) else string(getattr(model, "model", None))
    return _Run(result.final_output, rows, string(getattr(agent, "name", None)), name)


def _crewai(result: Any) -> _Run:
    rows: list[Any] = []
    for task in map(mapping, items(plain(result.tasks_output))):
        failures = [mapping(one) for one in items(task.get("tool_failures"))]
        failed = {(one.get("tool_name"), mapping(one.get("failure")).get("message")) for one in failures}
        for row in map(mapping, items(task.get("messages"))):
            content = row.get("content")
            own = [why for name, why in failed if name == row.get("name")]
            is_error = row.get("role") == "tool" and any(str(why) in str(content) for why in own)
            rows.append({**row, "is_error": True} if is_error else row)
    usage = plain(result.token_usage)
    return _Run(result.raw, rows, usage={**usage, "cached": mapping(usage).get("cached_prompt_tokens")})


def _smolagents(result: Any) -> _Run:
    rows: list[Any] = []
    for step in map(mapping, items(plain(result.steps))):
        if "task" in step:
            rows.append({"role": "user", "content": step["task"]})
        message = mapping(step.get("model_output_message"))
        calls = items(message.get("tool_calls")) or items(step.get("tool_calls"))
        if message or calls:
            model = mapping(message.get("raw")).get("model")
            usage = first({**message, **step}, "token_usage")
            text = first(message, "content") or step.get("model_output")
            rows.append({"role": "assistant", "content": text, "tool_calls": calls, "usage": usage, "model": model})
        error = mapping(step.get("error")).get("message")
        for call in map(mapping, calls):  # the step has one text for all of its calls
            seen = {"content": error, "is_error": True} if error else {"content": step.get("observations")}
            rows.append({"role": "tool", "tool_call_id": call.get("id"), **seen})
    limit = Failure("agent-limit", "smolagents reached its maximum number of steps")
    return _Run(result.output, rows, error=limit if result.state == "max_steps_error" else None)


def _state(state: Mapping[Any, Any], question: str) -> TargetResponse | Failure:
    """Return the answer in LangGraph's state or another mapping with messages."""
    run = _messages(state["messages"], question)
    if state.get("structured_response") is not None:
        run = run._replace(output=state["structured_response"])
    if state.get("__interrupt__"):
        why = f"the graph was interrupted, and waits to be resumed: {str(state['__interrupt__'])[:200]}"
        run = run._replace(error=Failure("target-error", why))
    return _answer(run)


def _messages(given: Iterable[Any], question: str) -> _Run:
    rows = [_row(one) for one in given]
    roles = [row.get("type", row.get("role")) if isinstance(row, Mapping) else "" for row in rows]
    users = [place for place, role in enumerate(roles) if role in {"human", "user"}]
    begin = next((one for one in reversed(users) if text_of(rows[one].get("content")) == question), 0)
    system = [row for row, role in zip(rows[:begin], roles, strict=False) if role == "system"]
    rows = [*system, *rows[begin:]]
    trace = trace_of_messages([bounded(row, cut=True) for row in rows])
    steps = () if isinstance(trace, Failure) else trace.steps
    last = next((one for one in reversed(steps) if isinstance(one, MessageStep | ToolCallStep)), None)
    answer = last.text if isinstance(last, MessageStep) and last.role == "assistant" else None
    errors = [first(row, "error_message", "error_code") for row in rows if isinstance(row, Mapping)]
    error = next((Failure("target-error", str(one)) for one in reversed(errors) if one), None)
    authors = [string(row.get("author")) for row in rows if isinstance(row, Mapping)]
    return _Run(answer, rows, next(filter(None, reversed(authors)), ""), error=error)


def _row(message: Any) -> Any:
    if isinstance(message, tuple):  # LangChain's ("user", "hi")
        return list(message)
    row = plain(message)
    used = getattr(message, "usage_metadata", None)
    if hasattr(message, "author") and used is not None:
        from agentv.targets.gemini.messages import usage_of

        tokens = usage_of(used.model_dump(by_alias=True, exclude_none=True))
        return {**row, "usage_metadata": None if tokens is None else structs.asdict(tokens)}
    return row


def _chat_completion(reply: Any) -> TargetResponse | Failure:
    from agentv.targets.openai_api.replies import chat_answer

    return _with_cost(chat_answer(reply.model_dump(mode="json")), reply.model)


def _openai_response(reply: Any) -> TargetResponse | Failure:
    from agentv.targets.openai_api.replies import response_answer

    return _with_cost(response_answer(reply.model_dump(mode="json", warnings=False)), reply.model)


def _anthropic_message(reply: Any) -> TargetResponse | Failure:
    from agentv.targets.anthropic.messages import response_of

    return response_of(reply.model_dump(mode="json"), reply.model)


def _gemini_reply(reply: Any) -> TargetResponse | Failure:
    from agentv.targets.gemini.messages import response_of

    return response_of(reply.model_dump(mode="json", by_alias=True, exclude_none=True), reply.model_version or "")


def _with_cost(answer: TargetResponse | Failure, model: str) -> TargetResponse | Failure:
    from agentv.targets.model_api.prices import cost_of

    if isinstance(answer, Failure):
        return answer
    cost = cost_of("", model, answer.token_usage)
    return replace(answer, cost_usd=cost, metadata={**answer.metadata, "model": model})


_READERS: tuple[tuple[str, tuple[str, ...], Callable[[Any], _Run | TargetResponse | Failure]], ...] = (
    ("AgentRunResult", ("output", "new_messages_json"), lambda one: _Run(one.output, parse(one.new_messages_json()))),
    ("RunResult", ("final_output", "to_input_list", "raw_responses"), _openai_agents),
    ("RunResultStreaming", ("final_output", "to_input_list", "raw_responses"), _openai_agents),
    ("CrewOutput", ("raw", "tasks_output", "token_usage"), _crewai),
    ("RunResult", ("output", "state", "steps"), _smolagents),
    ("ChatCompletion", ("choices", "model"), _chat_completion),
    ("ModelResponse", ("choices", "model"), _chat_completion),
    ("Response", ("output", "incomplete_details"), _openai_response),
    ("Message", ("content", "stop_reason"), _anthropic_message),
    ("BetaMessage", ("content", "stop_reason"), _anthropic_message),
    ("GenerateContentResponse", ("candidates", "usage_metadata"), _gemini_reply),
)
"""(name of a class, attributes that its objects have, function that reads them). `ModelResponse` is LiteLLM's."""


def _are_messages(rows: Any) -> bool:
    """Whether all values are messages of LangChain, pydantic-ai or ADK, or mappings with a role or a known type."""
    return isinstance(rows, list | tuple) and bool(rows) and all(map(_is_message, rows))


def _is_message(row: Any) -> bool:
    if isinstance(row, Mapping):
        return "role" in row or row.get("type") in {"human", "ai", "system", "tool", "function_call", "reasoning"}
    names = (("content", "type", "model_dump"), ("content", "author", "actions"), ("parts", "kind"))
    return any(all(hasattr(row, name) for name in one) for one in names)


_KNOWN_PACKAGES = frozenset(
    {"pydantic_ai", "agents", "crewai", "smolagents", "langchain_core", "langgraph", "openai", "anthropic", "google"}
)
"""Top-level packages of the known frameworks and SDKs."""


def _described(value: Any) -> str:
    """The class of an object with its package and version, such as `RunResult of openai-agents 0.5.1`."""
    from importlib.metadata import packages_distributions, version

    kind, package = type(value).__name__, type(value).__module__.partition(".")[0]
    name = next(iter(packages_distributions().get(package, ())), None)
    return kind if name is None else f"{kind} of {name} {version(name)}"
