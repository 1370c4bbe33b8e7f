"""An `AgentScript` in a file of YAML or JSON: a list of steps, or an object with `steps`, `when` and `side`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentv.model.values.message import ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json
from agentv.testing.agents.script import AgentScript
from agentv.testing.steps import DEFAULT_USAGE, Answer, ClosedConnection, Hang, Status, Step

_SCRIPT = frozenset({"steps", "when", "side"})
_ANSWER = frozenset({"text", "reasoning", "usage", "delay_s", "finish_reason", "refusal"})
_STATUS = frozenset({"status", "message", "retry_after"})
_FAULTS: Mapping[str, Step] = {"hang": Hang(), "closed-connection": ClosedConnection()}


def read_script(path: Path) -> AgentScript:
    """The script in a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no script; the text says where.
    """
    import yaml

    try:
        value = yaml.safe_load(path.read_bytes())
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error
    return script_from_json(value)


def script_from_json(value: Any) -> AgentScript:
    """The script in plain data.

    Raises:
        ValueError: it is malformed; the text says where.
    """
    if not isinstance(value, Mapping):
        return AgentScript(_steps(value, "the script"))
    _check(value, _SCRIPT, "the script")
    when = value.get("when", {})
    if not isinstance(when, Mapping):
        raise _wrong("'when'", "an object: text of a message → list of steps", when)
    more = {} if "side" not in value else {"side": _step(value["side"], "side")}
    parts = {str(text): _steps(steps, f"when '{text}'") for text, steps in when.items()}
    return AgentScript(_steps(value.get("steps"), "steps"), when=parts, **more)


def _steps(value: Any, where: str) -> list[Step]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise _wrong(where, "a list of at least one step", value)
    return [_step(one, f"step {number} of {where}") for number, one in enumerate(value, 1)]


def _step(value: Any, where: str) -> Step:
    if isinstance(value, str):
        return Answer(value)
    if not isinstance(value, Mapping):
        raise _wrong(where, "a text or an object", value)
    if "fault" in value:
        _check(value, frozenset({"fault"}), where)
        if value["fault"] not in _FAULTS:
            raise _wrong(f"'fault' of {where}", f"one of {', '.join(_FAULTS)}", value["fault"])
        return _FAULTS[value["fault"]]
    if "status" in value:
        _check(value, _STATUS, where)
        return Status(_number(value["status"], where), str(value.get("message", "")), value.get("retry_after"))
    return _answer(value, where)


def _answer(value: Mapping[str, Any], where: str) -> Answer:
    if "tools" in value:
        _check(value, _ANSWER | {"tools"}, where)
        calls = value["tools"]
        if not isinstance(calls, Sequence) or not all(isinstance(one, Mapping) and "tool" in one for one in calls):
            raise _wrong(f"'tools' of {where}", "a list of objects with 'tool'", calls)
        tools = tuple(_call(one) for one in calls)
    elif "tool" in value:
        tools = (_call({key: one for key, one in value.items() if key not in _ANSWER}),)
    else:
        _check(value, _ANSWER, where)
        tools = ()
    usage = value.get("usage")
    return Answer(
        text=str(value.get("text", "")),
        reasoning=str(value.get("reasoning", "")),
        tool_calls=tools,
        usage=TokenUsage.from_json(usage) if isinstance(usage, Mapping) else DEFAULT_USAGE,
        delay_s=float(value.get("delay_s", 0)),
        finish_reason=value.get("finish_reason"),
        refusal=value.get("refusal"),
    )


def _call(value: Mapping[str, Json]) -> ToolCall:
    """`{tool: NAME, …}`: the arguments stand beside the name, or under `arguments`."""
    given = value.get("arguments")
    beside = {key: one for key, one in value.items() if key not in ("tool", "arguments")}
    return ToolCall(str(value["tool"]), {**beside, **(given if isinstance(given, Mapping) else {})})


def _number(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(f"'status' of {where}", "a number such as 429", value)
    return value


def _wrong(what: str, expected: str, found: object) -> ValueError:
    return ValueError(f"{what} must be {expected}, found {found!r}")


def _check(value: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    unknown = [key for key in value if key not in known]
    if unknown:
        raise ValueError(f"{where} has an unknown key '{unknown[0]}'; known keys: {', '.join(sorted(known))}")
