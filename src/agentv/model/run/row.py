"""A row of `index.jsonl`: one finished trial, as written by a run and read by every reader (SPEC section 13).

This is the only declaration of a row. Keys are in the order of the file. `always` marks a key that is always written;
its argument is the value for rows that lack it. Other keys are only written if they differ from their default.
All totals and views are computed from rows alone.

`input` and `output` of a conversation are its transcript; `turns` are the answers to its calls. `metadata` belongs to
the case, and a target cannot change it; `response_metadata` is what a target reports in addition to its answer.
`user_done` says how a conversation with a simulated user ended; that user's calls cost `user_cost_usd`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from agentv.model.run.cases import RequiredGrade
from agentv.model.run.grade import TOLERANCE, AskedJudge, Check
from agentv.model.run.trial import SCHEMA_VERSION, SamplingStop, Status
from agentv.model.suite.conversation import UserDone
from agentv.model.suite.suite import DEFAULT_THRESHOLD, Aggregate
from agentv.model.suite.workspace import SandboxName
from agentv.model.values.response import Attempt
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY, always

Unit = Annotated[float, Meta(ge=-TOLERANCE, le=1 + TOLERANCE)]
"""A score, within rounding. Validated because rows may come from elsewhere, and one score of 7 distorts any mean."""


class ErrorRow(Struct, gc=False):
    """The reason why an assertion could not grade."""

    code: str
    message: str = always("")


class FailureRow(Struct, gc=False, omit_defaults=True):
    """The reason why a trial has no verdict. `stops`: it also stopped its target, so a resume runs the trial again."""

    code: str
    message: str = always("")
    retryable: bool = always(False)
    stops: bool = False


class ScoreRow(Struct, gc=False, omit_defaults=True, kw_only=True, rename={"passed": "pass"}):
    """The grade of one assertion. `score` and `passed` are None if it errored.

    `counted` is the value that enters the case's score, if not `score`. `needs` is the score from which it passes.
    """

    name: str
    type: str
    score: Unit | None = always(None)
    passed: bool | None = always(None)
    weight: float = always(1.0)
    required: bool | float = always(False)
    assertions: Sequence[Check] = always(())
    reason: str | None = always(None)
    details: Mapping[str, Any] = always(EMPTY)
    duration_ms: float = always(0.0)
    source: str | None = always(None)
    error: ErrorRow | None = None
    judge: AskedJudge | None = None
    counted: float | None = None
    needs: float | None = None


class TurnRow(Struct, gc=False, omit_defaults=True):
    """The target's answer to one turn. `messages` are present if it reported more than `output`."""

    output: str | None
    duration_ms: float | None
    token_usage: TokenUsage | None
    cost_usd: float | None
    messages: Sequence[Mapping[str, Any]] = ()
    context: Sequence[Any] = ()
    response_metadata: Mapping[str, Any] = EMPTY
    thoughts: str = ""
    finish_reason: str | None = None
    time_to_first_token_ms: float | None = None


class Row(Struct, gc=False, omit_defaults=True, kw_only=True):
    """One finished trial. Durations are in milliseconds, costs in US dollars.

    `position` is the position of the case in its eval file, from 1; 0 if unknown.
    """

    test_id: str
    suite: str = always("")
    eval_path: str | None = always(None)
    target: str
    prompt_id: str | None = always(None)
    vars: Mapping[str, Any] = always(EMPTY)
    finish_reason: str | None = always(None)
    sample: int = always(1)
    timestamp: str = always("")
    status: Status
    score: Unit | None = always(None)
    threshold: Unit = always(DEFAULT_THRESHOLD)
    output: str | None = always(None)
    input: Sequence[Mapping[str, Any]] = always(())
    scores: Sequence[ScoreRow] = always(())
    error: FailureRow | None = always(None)
    duration_ms: float = always(0.0)
    token_usage: TokenUsage | None = always(None)
    cost_usd: float | None = always(None)
    attempts: int = always(1)
    metadata: Mapping[str, Any] = always(EMPTY)
    case_sha256: str = always("")
    key: str
    schema_version: int = always(SCHEMA_VERSION)
    tags: tuple[str, ...] = ()
    judge_cost_usd: float | None = None
    repeat: int = 1
    aggregate: Aggregate | None = None
    conversation_id: str | None = None
    turns: Sequence[TurnRow] = ()
    retries: tuple[Attempt, ...] = ()
    judge_token_usage: TokenUsage | None = None
    reused: bool = False
    alpha: float | None = None
    stopped: SamplingStop | None = None
    expected_output: str | None = None
    cluster_key: str | None = None
    cluster: str | None = None
    variant: str | None = None
    position: int = 0
    sandbox: SandboxName | None = None
    agent_version: str | None = None
    agent_turns: int | None = None
    trace_path: str | None = None
    diff_path: str | None = None
    native_path: str | None = None
    workspace_path: str | None = None
    work_path: str | None = None
    work_sha256: str | None = None
    notes: tuple[str, ...] = ()
    context: Sequence[Any] = ()
    response_metadata: Mapping[str, Any] = EMPTY
    thoughts: str = ""
    time_to_first_token_ms: float | None = None
    user_done: UserDone | None = None
    user_cost_usd: float | None = None
    user_token_usage: TokenUsage | None = None

    @property
    def gates(self) -> tuple[RequiredGrade, ...]:
        """The required grades, in the order of `scores`."""
        found = (
            RequiredGrade.of(score.required, score.score or 0.0, score.passed or False)
            for score in self.scores
            if score.required is not False
        )
        return tuple(gate for gate in found if gate is not None)


class RowKey(Struct, gc=False):
    """The keys of a row that identify its trial, for readers that do not need the rest."""

    key: str
    test_id: str = ""
    eval_path: str | None = None

    @property
    def trial(self) -> str:
        """Unique name of the trial. The key is not unique, because two files may contain the same case."""
        return trial_name(self.eval_path, self.key)


def trial_name(eval_path: str | None, key: str) -> str:
    """Return a unique name for a trial: its file and its key."""
    return f"{eval_path}\0{key}"
