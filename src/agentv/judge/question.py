"""What a judge is asked: the prompt filled in, the answer behind a fence (SPEC section 9)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from agentv.judge.echo import Shown
from agentv.judge.excerpt import Excerpt
from agentv.judge.fence import Fence
from agentv.judge.material import fenced, is_shown, material_of
from agentv.judge.modes import MODES
from agentv.model.context import AssertionContext
from agentv.model.message import Message
from agentv.model.rubric import JUDGED_VARIABLES, PROMPT_VARIABLES, Rubric, RubricItem, RubricMode
from agentv.model.values import Json
from agentv.templating import RenderError, Scope, render_text

_NO_ENV: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a judge.

    Attributes:
        shown: the texts in it that a verdict must not be taken from.
        mark: what the judge was asked to confirm its verdict with; None in the first request.
        left_out: characters that the judge is not shown: of the answer as `output`, of the `tool_calls`.
    """

    rubric: Rubric
    messages: tuple[Message, ...]
    fence: Fence
    shown: Shown
    mark: str | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    def again(self, reply: str, problem: str) -> Question:
        """The request that follows an unreadable reply: all that was said, and what was wrong with it."""
        mark = secrets.token_hex(8)
        request = render_text(built_in("repair"), Scope({"problem": problem, "mark": mark}, _NO_ENV))
        said = (Message("assistant", reply),) if reply.strip() else ()
        return replace(self, messages=(*self.messages, *said, Message("user", request)), mark=mark)


@dataclass(frozen=True, slots=True)
class Written:
    """What code of the user's made of a prompt, and the fence that it was given the answer in."""

    messages: tuple[Message, ...]
    fence: Fence


def question_about(rubric: Rubric, context: AssertionContext, written: Written | None = None) -> Question:
    """The question whether the context's answer meets the rubric.

    Args:
        rubric: what is asked.
        context: of the answer.
        written: the prompt, where no template makes it.

    Raises:
        RenderError: the rubric's own prompt cannot be rendered, or does not show the answer.
    """
    fence = Fence.new() if written is None else written.fence
    messages = _rendered(rubric, context, fence) if written is None else written.messages
    _check_shown(rubric, messages, fence, whole=written is not None)
    cuts = _cuts(rubric, context)
    # a cut may make a verdict out of two ends that were none, with its mark or without
    ends = (text for cut in cuts.values() if cut.left_out for text in (cut.text, cut.joined))
    others = (context.output or "", _tool_calls(context), context.prompt, *material_of(rubric, context).values())
    return Question(
        rubric,
        (Message("system", _rules(rubric).replace("{{ token }}", fence.token)), *messages),
        fence,
        Shown((*others, *ends), MODES[rubric.mode].key if rubric.mode in MODES else ""),
        left_out={name: cut.left_out for name, cut in cuts.items() if cut.left_out},
    )


def _rendered(rubric: Rubric, context: AssertionContext, fence: Fence) -> tuple[Message, ...]:
    values = variables(rubric, context, fence)
    task = render_text(rubric.prompt or built_in(rubric.mode), Scope(context.vars, context.env, values))
    return (Message("user", task),)


def _cuts(rubric: Rubric, context: AssertionContext) -> dict[str, Excerpt]:
    texts = {"output": context.output or "", "tool_calls": _tool_calls(context)}
    return {name: Excerpt.of(text, rubric.max_chars) for name, text in texts.items()}


def _check_shown(rubric: Rubric, messages: tuple[Message, ...], fence: Fence, *, whole: bool) -> None:
    """Refuse a question that does not show what is judged; `whole`: to its last marker."""
    text = "\n".join(message.text for message in messages)
    for name in JUDGED_VARIABLES.get(rubric.mode, ("output",)):
        if not is_shown(name, text, fence, whole=whole):
            what = f"'{name}' with both of its markers" if whole else f"{{{{ {name} }}}}"
            message = f"it does not show {what}, so there is nothing to judge"
            raise RenderError("judge-prompt-without-output", message)


@cache
def built_in(name: str) -> str:
    """The text of a prompt of ours: the file `prompts/NAME.md`."""
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def _rules(rubric: Rubric) -> str:
    rules = _rules_of(rubric.mode)
    if rubric.scale is None:
        return rules
    low, high = rubric.scale
    for name, value in (("low", low), ("high", high), ("threshold", rubric.pass_threshold)):
        rules = rules.replace(f"{{{{ {name} }}}}", str(value))
    return rules


@cache
def _rules_of(mode: RubricMode) -> str:
    return built_in("rules").replace("{{ shape }}", built_in(f"{mode}-reply"))


def variables(rubric: Rubric, context: AssertionContext, fence: Fence) -> dict[str, Json]:
    """What a prompt may show, by every name that it may use; what is not the author's stands behind the fence."""
    shown = {name: cut.text for name, cut in _cuts(rubric, context).items()}
    tool_calls = shown["tool_calls"]
    values: dict[str, Json] = {
        "input": context.prompt,
        "output": fence.around("answer", shown["output"]),
        "expected_output": context.reference or "",
        "criteria": rubric.text or context.criteria or "",
        "rubrics": "\n".join(map(_line, rubric.items)) or rubric.text,
        "metadata": _JsonText(context.metadata),
        "tool_calls": fence.around("tool-calls", tool_calls) if tool_calls else "",
        "file_changes": "",
    }
    known = {name: values[canonical] for name, canonical in PROMPT_VARIABLES.items()}
    return known | fenced(rubric, context, fence)


class _JsonText(dict[str, Json]):
    """An object that a template may look into, and that reads as JSON where it is shown whole."""

    def __str__(self) -> str:
        return json.dumps(self, ensure_ascii=False, indent=2)


def _line(item: RubricItem) -> str:
    outcome = _flat(item.outcome)
    line = f"[{item.id}] {outcome}{_GUARD if item.operator == 'contradiction' else ''}".rstrip()
    return "\n".join((line, *(f"    {_span(low, high)}: {_flat(text)}" for low, high, text in item.score_ranges)))


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _flat(text: str) -> str:
    """On one line, whatever it holds."""
    return " ".join(text.split())


_GUARD = " (contradiction guard)"


def _tool_calls(context: AssertionContext) -> str:
    return "\n".join(
        f"{call.name} {json.dumps(dict(call.arguments), ensure_ascii=False)}"
        for message in context.messages
        for call in message.tool_calls
    )
