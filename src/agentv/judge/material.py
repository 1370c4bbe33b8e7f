"""Material of a question beside the answer, such as retrieved text or a transcript. None of it is trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping

from agentv.judge.delimiter import Delimiter
from agentv.model.run.context import AssertionContext
from agentv.model.run.rubric import MODE_VARIABLES, Rubric
from agentv.model.values.message import Message

_MARKERS = {"context": "context", "transcript": "transcript", "output": "answer", "results": "grades"}
"""Prompt variable → what its markers begin with."""


def material_of(rubric: Rubric, context: AssertionContext) -> Mapping[str, str]:
    """The variables that a rubric's mode adds, as plain text; empty for most modes."""
    made = {"context": _pieces, "transcript": lambda _, context: transcript_of(context), "results": _results}
    return {name: made[name](rubric, context) for name in MODE_VARIABLES.get(rubric.mode, ())}


def delimited(rubric: Rubric, context: AssertionContext, delimiter: Delimiter) -> dict[str, str]:
    """The same, each between its markers; an empty one stays empty. What is judged piece by piece is its own rubric."""
    found = {
        name: delimiter.around(_MARKERS[name], text) if text else ""
        for name, text in material_of(rubric, context).items()
    }
    return {**found, "rubrics": found["context"]} if rubric.mode == "context-relevance" else found


def is_shown(name: str, text: str, delimiter: Delimiter, *, whole: bool = False) -> bool:
    """Whether a text shows the value of a variable, from its first marker on; `whole`: and up to its last one."""
    marker = _MARKERS[name]
    return delimiter.shows(marker, text) and (not whole or f"</{marker}-{delimiter.token}>" in text)


def _pieces(rubric: Rubric, _context: AssertionContext) -> str:
    """The context: line by line with their ids where each is judged, else the pieces as they are."""
    if rubric.mode == "context-relevance":
        return "\n".join(f"[{item.id}] {' '.join(item.outcome.split())}" for item in rubric.items)
    return "\n\n".join(rubric.context)


def _results(_rubric: Rubric, context: AssertionContext) -> str:
    return json.dumps(context.results, ensure_ascii=False, indent=2, default=str)


def transcript_of(context: AssertionContext) -> str:
    """Transcript of an agent: its messages and tool calls in order."""
    return "\n".join(line for message in context.messages for line in _lines(message))


def _lines(message: Message) -> list[str]:
    lines = [f"{message.role}: {message.text}"] if message.text.strip() else []
    for call in message.tool_calls:
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=str)
        lines.append(f"{message.role} calls {call.name} {arguments}")
        if call.output is not None:
            lines.append(f"{call.name} gives: {call.output}")
    return lines
