"""Identity of a question to a judge: labels by people hold as long as it stays the same."""

from __future__ import annotations

from hashlib import sha256

from agentv.judge.question import built_in, built_in_task
from agentv.model.run.grade import AskedJudge
from agentv.model.run.rubric import Rubric


def asked_judge(name: str, model: str, rubric: Rubric, criteria: str | None) -> AskedJudge:
    """Which judge is asked, and by what.

    Args:
        name: of the judge.
        model: its provider and model.
        rubric: the question; texts that were retrieved for one answer are no part of its identity.
        criteria: the case's, where the rubric has no text of its own.
    """
    text = rubric.text or ("" if rubric.items else criteria or "")
    asked = (rubric.mode, text, rubric.items, rubric.scale, rubric.pass_threshold, rubric.category_scores)
    # code that writes a prompt is known by its name: a judge that it is given to has no file of it
    template = rubric.prompt or rubric.prompt_path or built_in_task(rubric.mode) + built_in("rules")
    prompt = (template, rubric.temperature, rubric.votes, rubric.max_chars)
    looking = (built_in("looking"),) if rubric.looks else ()
    return AskedJudge(name, model, _written(rubric, text), _digest(asked), _digest((*prompt, *looking)))


def _written(rubric: Rubric, text: str) -> str:
    """The rubric as a person reads it."""
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
