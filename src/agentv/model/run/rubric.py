"""Rubrics for judges, and judges' verdicts (SPEC section 9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from agentv.model.run.grade import AskedJudge, Check
from agentv.model.values.message import Message
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY, Json, JsonObject

RubricMode = Literal[
    "freeform",
    "checklist",
    "score-ranges",
    "scale",
    "factuality",
    "closed-qa",
    "answer-relevance",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "goal-success",
    "aggregate",
]
"""What a judge does: the first four are modes of `llm-rubric`, each other one belongs to an assertion type."""

RUBRIC_MARK = 0.8
"""Default score from which a rubric passes."""

MAX_CHARS = 100_000
"""Default maximum characters of an answer in a judge prompt."""

PROMPT_VARIABLES: Mapping[str, str] = {
    **{name: name for name in ("input", "output", "expected_output", "criteria", "rubrics", "metadata")},
    **{name: name for name in ("tool_calls", "file_changes", "context", "response_metadata")},
    "question": "input",
    "candidate_answer": "output",
    "reference_answer": "expected_output",
    "expected_outcome": "criteria",
    "sidecar": "metadata",
    "metadata_json": "metadata",
    "rubrics_json": "rubrics",
}
"""Variables of judge prompts: each spelling → the canonical one (SPEC section 9). `vars` and `env` exist as well."""

MODE_VARIABLES: Mapping[RubricMode, tuple[str, ...]] = {
    "context-faithfulness": ("context",),
    "context-recall": ("context",),
    "context-relevance": ("context",),
    "goal-success": ("transcript",),
    "aggregate": ("results",),
}
"""Additional variables of judge prompts, by mode."""

JUDGED_VARIABLES: Mapping[RubricMode, tuple[str, ...]] = {
    "context-faithfulness": ("output", "context"),
    "context-recall": ("context",),
    "context-relevance": ("context",),
    "aggregate": ("results",),
}
"""Variables with the judged texts, which a judge prompt of the mode must contain; in other modes it is `output`."""

WRITER_NAMES: tuple[str, ...] = (*PROMPT_VARIABLES, "transcript", "vars", "config", "case_id", "ctx")
"""Parameters that a Python function writing a judge prompt may declare; texts that its mode lacks are empty."""


class RubricItem(Struct, frozen=True):
    """One item of a checklist, or one item with score ranges.

    Attributes:
        operator: `correctness`: the answer must do it; `contradiction`: the answer must not contradict it.
        outcome: what the answer must do; may be empty if score ranges define it.
        required: in a checklist, whether the grade fails if this item fails.
        score_ranges: (lowest points, highest points, what earns them), within 0..10, ascending; empty in a checklist.
        min_score: points, 0..10, below which the grade fails; None for no minimum.
    """

    id: str
    outcome: str
    weight: float = 1.0
    required: bool = True
    operator: Literal["correctness", "contradiction"] = "correctness"
    score_ranges: tuple[tuple[int, int, str], ...] = ()
    min_score: int | None = None


class PromptWriter(Protocol):
    """User code that writes a judge prompt."""

    async def write(self, values: Mapping[str, Json], context: Any) -> str | tuple[Message, ...] | Failure:
        """Return the prompt as text or messages.

        Args:
            values: the variables of a template, by name; the graded text is enclosed in its delimiters.
            context: the context that custom assertions get, with `output` enclosed in its delimiters too.
        """


class Rubric(Struct, frozen=True):
    """The criteria that a judge grades by.

    Attributes:
        text: the rubric or criteria as prose; empty in checklist mode, and if the prompt contains everything.
        items: items of a checklist, or with score ranges; empty in other modes.
        prompt: prompt template that replaces the built-in one.
        prompt_path: file of that template, for messages.
        writer: user code that writes the prompt, in place of a template.
        scale: lowest and highest points, in scale mode.
        pass_threshold: points from which an answer passes, in scale mode.
        votes: number of verdicts to request, odd; the median counts.
        max_chars: maximum characters of the answer, and of its tool calls, in the judge prompt.
        context: the texts that were retrieved for the answer, in modes that use them.
        category_scores: (category, score) pairs for `factuality`.
        looks: whether the judge is an agent that inspects the files of the workspace.
    """

    mode: RubricMode
    text: str = ""
    items: tuple[RubricItem, ...] = ()
    prompt: str | None = None
    prompt_path: str | None = None
    temperature: float = 0.0
    scale: tuple[int, int] | None = None
    pass_threshold: int | None = None
    votes: int = 1
    max_chars: int = MAX_CHARS
    writer: PromptWriter | None = None
    context: tuple[str, ...] = ()
    category_scores: tuple[tuple[str, float], ...] = ()
    looks: bool = False


class Verdict(Struct, frozen=True):
    """The parsed verdict of a judge.

    Attributes:
        score: 0..1. Freeform: the judge's score. Checklist: Σ satisfied weights / Σ weights. Score ranges:
            Σ weight × points/10 / Σ weights. Scale: (points - low) / (high - low).
        satisfied: whether all required items are satisfied and every `min_score` is reached; None in modes without
            items.
        reply: the judge's reply (shortened), kept as evidence.
        passed: in scale mode, whether the points reach the threshold; None if the score decides.
        undecided: in scale mode, whether the reply has no verdict: the answer then fails, but was not judged.
        votes: score of each vote, in order; empty if there was only one.
        shared: whether another assertion of this run already made the same call, so that no call was made.
        details: further details of the grade, such as points, or how much of a long answer was cut.
        asked: the judge and the rubric.
    """

    score: float
    checks: tuple[Check, ...]
    reason: str | None
    reply: str
    satisfied: bool | None = None
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    passed: bool | None = None
    undecided: bool = False
    votes: tuple[float, ...] = ()
    shared: bool = False
    details: JsonObject = field(default=EMPTY)
    asked: AskedJudge | None = None

    @property
    def counted(self) -> float:
        """The score of the grade: 0 if a required item failed (SPEC section 9)."""
        return 0.0 if self.satisfied is False else self.score


class JudgeFailure(Failure, frozen=True):
    """The reason why a judge gave no verdict, its reply (shortened), and the cost of its calls so far."""

    reply: str = ""
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None


class Choice(Struct, frozen=True):
    """The choices of a judge that was given the answers in two orders.

    Attributes:
        best: index, from 0, of the chosen answer for each order; if they differ, it is a tie.
        reasons: the reason for each choice; None if the judge gave none.
    """

    best: tuple[int, int]
    reasons: tuple[str | None, str | None] = (None, None)
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
