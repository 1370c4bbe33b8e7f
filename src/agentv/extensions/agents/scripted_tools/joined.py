"""An agent's trace joined with the calls that reached our tools: each call counts once, and what we saw decides."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from agentv.model.values.trace import MessageStep, Step, ToolCallStep, Trace

UNCONFIRMED = "unconfirmed_calls"
"""Key of the trace's metadata: calls of our tools that the agent reports, and that never reached them."""

_JOINTS = (".", "_", "__", "/", "-")
"""What stands between the names of server and tool, in the names that agents make of them."""


def joined(trace: Trace | None, calls: Sequence[ToolCallStep], servers: Sequence[str]) -> Trace:
    """The trace with the recorded calls.

    A call that the agent reports too stands where the agent reports it, with the arguments and the result that we saw.
    One that it does not report follows the recorded call before it. One that we never saw is named in the metadata and
    left out. If the agent says that it failed, it stays under another name: it is an error of the agent, and no call of
    the tool.

    Args:
        trace: of the agent; None: it reports none.
        calls: in the order in which they came.
        servers: the names of our servers.
    """
    if trace is None:
        return Trace(tuple(calls), source="tools")
    steps: list[Step] = list(trace.steps)
    free = [place for place, step in enumerate(steps) if isinstance(step, ToolCallStep)]
    seen: dict[int, ToolCallStep] = {}
    extra: dict[int, list[ToolCallStep]] = {}
    last = -1
    for call in calls:
        place = _match(call, steps, free)
        if place is None:
            extra.setdefault(last, []).append(replace(call, started_ms=None))  # the agent's clock began later
            continue
        free.remove(place)
        seen[place] = call
        last = place
    missing = [place for place in free if _is_claimed(steps[place], servers)]
    made: list[Step] = []
    if -1 in extra:
        begin = _first_answer(steps)
        made += [*steps[:begin], *extra[-1]]
    else:
        begin = 0
    for place, step in enumerate(steps[begin:], begin):
        if place in missing:
            made += _renamed(step)
            continue
        made.append(_confirmed(step, seen[place]) if place in seen else step)
        made += extra.get(place, ())
    names = [step.name for place in missing if isinstance(step := steps[place], ToolCallStep)]
    metadata = {**trace.metadata, UNCONFIRMED: names} if names else trace.metadata
    return replace(trace, steps=tuple(made), metadata=metadata)


def _match(call: ToolCallStep, steps: Sequence[Step], free: Sequence[int]) -> int | None:
    """The agent's report of a recorded call: with the same arguments if there is one, else the first of that name."""
    named = [place for place in free if _is_named(steps[place], call)]
    same = (place for place in named if _arguments(steps[place]) == call.arguments)
    return next(same, named[0] if named else None)


def _is_named(step: Step, call: ToolCallStep) -> bool:
    if not isinstance(step, ToolCallStep) or step.evidence != "agent":
        return False
    server, _, tool = call.name.partition(".")
    if {step.name, step.native_name} & {call.name, *(f"{server}{joint}{tool}" for joint in _JOINTS)}:
        return True
    words = step.native_name.replace("(", " ").replace(")", " ").split()
    return call.native_name in (step.name, step.native_name, *words[:1])


def _arguments(step: Step) -> object:
    return step.arguments if isinstance(step, ToolCallStep) else None


def _is_claimed(step: Step, servers: Sequence[str]) -> bool:
    """Whether the agent reports a call of one of our tools. Names count in any case, as they do for assertions."""
    if not isinstance(step, ToolCallStep):
        return False
    names = (step.name.casefold(), step.native_name.casefold())
    ours = [f"{server.casefold()}{joint}" for server in servers for joint in _JOINTS]
    return any(name.startswith(one) for name in names for one in ours)


def _renamed(step: Step) -> Sequence[Step]:
    """A call that failed on the agent's side, renamed so that it is not one of our tools; empty for any other."""
    if not isinstance(step, ToolCallStep) or step.status in {"completed", "unknown"}:
        return ()
    name = f"unconfirmed:{step.name}"
    return (replace(step, name=name, native_name=name),)


def _confirmed(step: Step, call: ToolCallStep) -> Step:
    if not isinstance(step, ToolCallStep):
        return step
    return replace(
        call,
        native_name=step.native_name,
        id=step.id,
        parent=step.parent,
        started_ms=step.started_ms,
        duration_ms=step.duration_ms if step.duration_ms is not None else call.duration_ms,
    )


def _first_answer(steps: Sequence[Step]) -> int:
    """Where calls go that the agent reports nothing near of: before its last message."""
    said = [place for place, step in enumerate(steps) if isinstance(step, MessageStep) and step.role == "assistant"]
    return said[-1] if said else len(steps)
