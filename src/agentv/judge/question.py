"""The question to a judge: its prompt, delimiters around untrusted text, the confirmation word, and its identity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import structs

from agentv.judge.material import Delimiter, Excerpt, delimited, is_shown, material_of, new_word, transcript_of
from agentv.judge.quotation import ShownTexts, texts_of
from agentv.judge.shapes import MODES, schema_of
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import AskedJudge
from agentv.model.run.rubric import JUDGED_VARIABLES, PROMPT_VARIABLES, Rubric, RubricItem, RubricMode
from agentv.model.values.message import Message
from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject
from agentv.templating import RenderError, Scope, render_around, render_text

_NO_ENV: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class RubricQuestion:
    """One question to a judge.

    Attributes:
        shown: the untrusted texts in it; a verdict that quotes them does not count.
        word: the confirmation word that a verdict must carry. It is new for each request, and only our instruction
            contains it.
        left_out: `output`, `tool_calls` or `file_changes` → number of characters that the judge is not shown.
        earlier: the confirmation words of earlier requests.
    """

    rubric: Rubric
    messages: tuple[Message, ...]
    delimiter: Delimiter
    shown: ShownTexts
    word: str
    left_out: Mapping[str, int] = field(default_factory=dict)
    earlier: tuple[str, ...] = ()

    @property
    def nonces(self) -> tuple[str, ...]:
        """Random values that are new in each question."""
        return (self.delimiter.token, *self.earlier, self.word)

    @property
    def schema(self) -> JsonObject | None:
        """JSON Schema of the reply; None if the reply is a line of text."""
        return schema_of(self.rubric)

    @property
    def temperature(self) -> float:
        """Temperature of the rubric."""
        return self.rubric.temperature

    def again(self, reply: str, problem: str) -> RubricQuestion:
        """Return the request after an unreadable reply: the conversation so far, the problem, and a new word."""
        word = new_word()
        request = render_text(
            built_in("repair"), Scope({"problem": problem, "confirm": _confirm(self.rubric.mode, word)}, _NO_ENV)
        )
        previous = (Message("assistant", reply),) if reply.strip() else ()
        messages = (*self.messages, *previous, Message("user", request))
        return replace(self, messages=messages, word=word, earlier=(*self.earlier, self.word))


def question_about(
    rubric: Rubric,
    context: AssertionContext,
    delimiter: Delimiter | None = None,
    written: tuple[Message, ...] | None = None,
) -> RubricQuestion:
    """Return the question whether the context's answer meets the rubric.

    Args:
        rubric: the rubric to ask about.
        context: context of the answer.
        delimiter: delimiter for untrusted text; None: a new one.
        written: prompt written by user code, which was given the answer between these delimiters; None: a template
            makes the prompt.

    Raises:
        RenderError: the rubric's own prompt cannot be rendered, or does not show the answer.
    """
    delimiter, word = delimiter or Delimiter.new(), new_word()
    messages = _rendered(rubric, context, delimiter) if written is None else written
    _check_shown(rubric, messages, delimiter, whole=written is not None)
    if written is not None or rubric.prompt is not None:
        messages = _with_instruction(messages, _confirm(rubric.mode, word))
    excerpts = _excerpts(rubric, context)
    return RubricQuestion(
        rubric,
        (Message("system", _rules(rubric, delimiter, word)), *messages),
        delimiter,
        ShownTexts(_shown(rubric, context, excerpts), MODES[rubric.mode].key if rubric.mode in MODES else ""),
        word,
        {name: excerpt.left_out for name, excerpt in excerpts.items() if excerpt.left_out},
    )


def _shown(rubric: Rubric, context: AssertionContext, excerpts: Mapping[str, Excerpt]) -> tuple[str, ...]:
    """Return every untrusted text that a judge may quote, the answer last."""
    # joined by the cut, with its note or without, the two ends of a text may look like a verdict
    ends = (text for excerpt in excerpts.values() if excerpt.left_out for text in (excerpt.text, excerpt.joined))
    whole = (transcript_of(context), context.output or "") if rubric.writer is not None else ()
    return (
        *texts_of(context.vars),
        *texts_of(context.metadata),
        *texts_of(context.response_metadata),
        *context.retrieved,
        rubric.text or context.criteria or "",
        "\n".join(item.outcome for item in rubric.items),
        *whole,
        *ends,
        *material_of(rubric, context).values(),
        context.reference or "",
        context.prompt,
        excerpts["tool_calls"].text,
        excerpts["file_changes"].text,
        excerpts["output"].text,
    )


def _with_instruction(messages: tuple[Message, ...], instruction: str) -> tuple[Message, ...]:
    """Append our instruction to a user's prompt, so that it overrides any format that the prompt asks for."""
    last = messages[-1] if messages else None
    if last is None or last.role != "user" or not isinstance(last.content, str):
        return (*messages, Message("user", instruction))
    return (*messages[:-1], structs.replace(last, content=f"{last.content}\n\n{instruction}"))


_AUTHORED = frozenset({"criteria", "expected_outcome", "rubrics", "rubrics_json", "env", "token"})
"""Variables of a judge prompt whose values its author or agentv wrote."""

_DATA_OF_MODE: Mapping[RubricMode, frozenset[str]] = {
    "context-recall": frozenset({"rubrics", "rubrics_json"}),
    "context-relevance": frozenset({"rubrics_json"}),
    "goal-success": frozenset({"criteria", "expected_outcome", "rubrics", "rubrics_json"}),
}
"""Mode → those of them that may hold text of the case: its reference, or its input as the goal."""

TEXTS_OF_THE_CASE = {
    "input": "input",
    "question": "input",
    "expected_output": "reference",
    "reference_answer": "reference",
}
"""Variables that are texts of the case → beginning of their delimiters."""

_MARKERS = {
    "output": "answer",
    "candidate_answer": "answer",
    **TEXTS_OF_THE_CASE,
    "metadata": "metadata",
    "sidecar": "metadata",
    "metadata_json": "metadata",
    "context": "context",
    "response_metadata": "metadata",
}
"""Variable → beginning of its delimiters; those of all others begin with `data`."""


def _rendered(rubric: Rubric, context: AssertionContext, delimiter: Delimiter) -> tuple[Message, ...]:
    """Render the prompt. Values are delimited where placeholders show them, so that conditions see plain values."""
    values = {**variables(rubric, context, delimiter), "token": delimiter.token}
    own = _AUTHORED - _DATA_OF_MODE.get(rubric.mode, frozenset()) if rubric.prompt else _AUTHORED

    def around(names: frozenset[str], text: str) -> str:
        if names <= own:
            return text
        return delimiter.wrap_data(next((_MARKERS[name] for name in _MARKERS if name in names), "data"), text)

    task = render_around(rubric.prompt or built_in_task(rubric.mode), Scope(context.vars, context.env, values), around)
    return (Message("user", task),)


def _excerpts(rubric: Rubric, context: AssertionContext) -> dict[str, Excerpt]:
    changes = context.changes.patch if context.changes is not None else ""
    calls = (call for message in context.messages for call in message.tool_calls)
    called = "\n".join(f"{call.name} {json.dumps(dict(call.arguments), ensure_ascii=False)}" for call in calls)
    texts = {"output": context.output or "", "tool_calls": called, "file_changes": changes}
    return {name: Excerpt.of(text, rubric.max_chars) for name, text in texts.items()}


def _check_shown(rubric: Rubric, messages: tuple[Message, ...], delimiter: Delimiter, *, whole: bool) -> None:
    """Raise if a question does not show what is judged; `whole`: up to the closing delimiter."""
    text = "\n".join(message.text for message in messages)
    for name in JUDGED_VARIABLES.get(rubric.mode, ("output",)):
        if not is_shown(name, text, delimiter, whole=whole):
            what = f"'{name}' with both of its markers" if whole else f"{{{{ {name} }}}}"
            message = f"it does not show {what}, so there is nothing to judge"
            raise RenderError("judge-prompt-without-output", message)


@cache
def built_in(name: str) -> str:
    """Return the text of a built-in prompt, from `prompts/NAME.md`."""
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def built_in_task(mode: RubricMode) -> str:
    """Return the text of a mode's built-in prompt. It ends with the case's metadata, if the case has any."""
    return built_in(mode) + built_in("metadata")


def _rules(rubric: Rubric, delimiter: Delimiter, word: str) -> str:
    values = {"token": delimiter.token, "mark": word}
    if rubric.scale is not None:
        low, high = rubric.scale
        values |= {"low": str(low), "high": str(high), "threshold": str(rubric.pass_threshold)}
    rules = _rules_of(rubric.mode)
    if rubric.looks:
        rules += f"\n\n{built_in('looking')}"
    for name, value in values.items():
        rules = rules.replace(f"{{{{ {name} }}}}", value)
    return rules


@cache
def _rules_of(mode: RubricMode) -> str:
    rules = built_in("rules").replace("{{ shape }}", built_in(f"{mode}-reply"))
    return rules.replace("{{ confirm }}", _confirm(mode, "{{ mark }}"))


def _confirm(mode: RubricMode, word: str) -> str:
    return built_in("scale-confirm" if mode == "scale" else "confirm").replace("{{ mark }}", word)


def variables(rubric: Rubric, context: AssertionContext, delimiter: Delimiter) -> dict[str, Json]:
    """Return the values of all variables of a prompt, under all their names; outputs of the agent are delimited."""
    shown = {name: excerpt.text for name, excerpt in _excerpts(rubric, context).items()}
    tool_calls, file_changes = shown["tool_calls"], shown["file_changes"]
    values: dict[str, Json] = {
        "input": context.prompt,
        "output": delimiter.around("answer", shown["output"]),
        "expected_output": context.reference or "",
        "criteria": rubric.text or context.criteria or "",
        "rubrics": "\n".join(map(_line, rubric.items)) or rubric.text,
        "metadata": _JsonText(context.metadata),
        "context": "\n\n".join(context.retrieved),
        "response_metadata": _JsonText(context.response_metadata),
        "tool_calls": delimiter.around("tool-calls", tool_calls) if tool_calls else "",
        "file_changes": delimiter.around("file-changes", file_changes) if file_changes else "",
    }
    known = {name: values[canonical] for name, canonical in PROMPT_VARIABLES.items()}
    if rubric.items:
        known["rubrics_json"] = json.dumps([_item(item) for item in rubric.items], ensure_ascii=False)
    return known | delimited(rubric, context, delimiter)


class _JsonText(dict[str, Json]):
    """An object whose keys a template may access, and that is rendered as JSON."""

    def __str__(self) -> str:
        return json.dumps(self, ensure_ascii=False, indent=2)


def _line(item: RubricItem) -> str:
    outcome = _flat(item.outcome)
    lines = [f"[{item.id}] {outcome}{_GUARD if item.operator == 'contradiction' else ''}".rstrip()]
    for low, high, text in item.score_ranges:
        lines.append(f"    {low}{'' if low == high else f'-{high}'}: {_flat(text)}")
    return "\n".join(lines)


def _item(item: RubricItem) -> JsonObject:
    """Return an item in AgentV's form."""
    plain: dict[str, Json] = {"id": item.id, "outcome": item.outcome, "weight": item.weight}
    if not item.score_ranges:
        return {**plain, "required": item.required, "operator": item.operator}
    ranges: list[Json] = [{"score_range": [low, high], "outcome": text} for low, high, text in item.score_ranges]
    return {**plain, "min_score": None if item.min_score is None else item.min_score / 10, "score_ranges": ranges}


def _flat(text: str) -> str:
    return " ".join(text.split())


_GUARD = " (contradiction guard)"


async def question_of(rubric: Rubric, context: AssertionContext) -> RubricQuestion:
    """Return the question about the context's answer, with a prompt from a template or from user code.

    Raises:
        RenderError: the prompt cannot be made, or does not show the answer.
    """
    if rubric.writer is None:
        return question_about(rubric, context)
    delimiter = Delimiter.new()
    values = dict(variables(rubric, context, delimiter))
    for name, marker in TEXTS_OF_THE_CASE.items():  # without placeholders, values must be delimited here
        text = values[name]
        values[name] = delimiter.wrap_data(marker, text) if isinstance(text, str) and text else text
    found = await rubric.writer.write(values, structs.replace(context, output=str(values["output"])))
    if isinstance(found, Failure):
        raise RenderError(found.code, found.message)
    messages = (Message("user", found),) if isinstance(found, str) else found
    return question_about(rubric, context, delimiter, messages)


def asked_judge(name: str, model: str, rubric: Rubric, criteria: str | None) -> AskedJudge:
    """Return the identity of a judge and its question.

    Args:
        name: name of the judge.
        model: its provider and model.
        rubric: the question; texts retrieved for one answer are not part of its identity.
        criteria: the case's criteria, used if the rubric has no text of its own.
    """
    text = rubric.text or ("" if rubric.items else criteria or "")
    asked = (rubric.mode, text, rubric.items, rubric.scale, rubric.pass_threshold, rubric.category_scores)
    # code that writes the prompt is identified by its path, since the rubric does not hold its text
    template = rubric.prompt or rubric.prompt_path or built_in_task(rubric.mode) + built_in("rules")
    prompt = (template, rubric.temperature, rubric.votes, rubric.max_chars)
    looking = (built_in("looking"),) if rubric.looks else ()
    return AskedJudge(name, model, _rubric_text(rubric, text), _digest(asked), _digest((*prompt, *looking)))


def _rubric_text(rubric: Rubric, text: str) -> str:
    """Return the rubric in a form for people."""
    items = []
    for item in rubric.items:
        outcome = item.outcome or item.id
        contradicted = f"must not contradict: {outcome}" if item.operator == "contradiction" else outcome
        ranges = "".join(f"\n    {low} to {high} points: {what}" for low, high, what in item.score_ranges)
        items.append(f"- {contradicted}{ranges}")
    if rubric.scale is not None:
        items.append(f"Points from {rubric.scale[0]} to {rubric.scale[1]}; {rubric.pass_threshold} or more pass.")
    return "\n".join((*((text,) if text else ()), *items)) or rubric.mode


def _digest(facts: object) -> str:
    return sha256(repr(facts).encode(errors="surrogatepass")).hexdigest()
