"""The question to a judge, and its verdict (SPEC section 9)."""

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
"""What a judge is asked: the first four are those of `llm-rubric`, the others each the question of one type."""

RUBRIC_MARK = 0.8
"""The score at which a rubric passes where the entry says nothing."""

MAX_CHARS = 100_000
"""Characters of an answer that a judge is shown where the entry says nothing."""

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
"""What a judge prompt may show: each spelling → the canonical one (SPEC section 9). `vars` and `env` come on top."""

MODE_VARIABLES: Mapping[RubricMode, tuple[str, ...]] = {
    "context-faithfulness": ("context",),
    "context-recall": ("context",),
    "context-relevance": ("context",),
    "goal-success": ("transcript",),
    "aggregate": ("results",),
}
"""What a judge prompt of a mode may show besides."""

JUDGED_VARIABLES: Mapping[RubricMode, tuple[str, ...]] = {
    "context-faithfulness": ("output", "context"),
    "context-recall": ("context",),
    "context-relevance": ("context",),
    "aggregate": ("results",),
}
"""What a judge prompt of a mode must show, since it is what is judged; in all others it is `output`."""

WRITER_NAMES: tuple[str, ...] = (*PROMPT_VARIABLES, "transcript", "vars", "config", "case_id", "ctx")
"""What a Python function that writes a judge prompt may ask for; text that its mode does not have is empty."""


class RubricItem(Struct, frozen=True):
    """One line of a checklist, or of score ranges.

    Attributes:
        operator: `correctness`: the answer must do it; `contradiction`: the answer must not contradict it.
        outcome: what the answer must do; may be empty if score ranges define it.
        required: checklist: whether the grade fails with this item.
        score_ranges: (lowest points, highest points, what earns them), of 0..10, ascending; empty in a checklist.
        min_score: minimum points, 0..10; below them the grade fails; None: no minimum.
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
        """The prompt as text or messages.

        Args:
            values: the variables of a template, by name; the graded text is between its delimiters.
            context: the answer's, as custom assertions get it, with `output` between its markers too.
        """


class Rubric(Struct, frozen=True):
    """The criteria that a judge grades by.

    Attributes:
        text: the rubric or criteria as prose; empty in checklist mode, and if the prompt contains everything.
        items: of a checklist, or with score ranges; empty in the other modes.
        prompt: the text of a prompt template that replaces the built-in one.
        prompt_path: the file of that template, for messages.
        writer: user code that writes the prompt, instead of a template.
        scale: lowest and highest points, in scale mode.
        pass_threshold: points of the scale at which an answer passes.
        votes: number of verdicts to request, odd; the median counts.
        max_chars: maximum characters of the answer, and of its tool calls, in the judge prompt.
        context: the texts that were retrieved for the answer, in the modes that use them.
        category_scores: (category, score), of `factuality`.
        looks: the judge is an agent that looks at the files of the workspace.
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
        score: 0..1. Freeform: as the judge gave it. Checklist: Σ satisfied weights / Σ weights. Score ranges:
            Σ weight × points/10 / Σ weights. Scale: (points - low) / (high - low).
        satisfied: whether every required item is satisfied, and every `min_score` of an item reached; None in the
            modes without items.
        reply: the judge's own words (shortened), kept as evidence.
        passed: scale: whether the points reach the threshold; None if the score decides.
        undecided: scale: the reply has no verdict, which fails the answer but says nothing about it.
        votes: the score of each vote, in order; empty if there was only one.
        shared: the same question was already asked in this run, so no call was made.
        details: further details of the grade: points, the length cut from a long answer.
        asked: which judge gave it, and by what.
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
    """Why a judge gave no verdict, its reply (shortened), and the cost of its calls so far."""

    reply: str = ""
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None


class Choice(Struct, frozen=True):
    """The choices of a judge that saw the answers in two orders.

    Attributes:
        best: index, from 0, of the chosen answer in each order; two that differ are a tie.
        reasons: its reason in each order, None without one.
    """

    best: tuple[int, int]
    reasons: tuple[str | None, str | None] = (None, None)
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
