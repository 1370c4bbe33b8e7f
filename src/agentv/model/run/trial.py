"""Trials and their results (SPEC sections 1, 10 and 13)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from agentv.model.run.grade import Grade
from agentv.model.run.sampling import SamplingStop
from agentv.model.run.work import AgentWork, StoredWork
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.conversation import UserDone
from agentv.model.suite.suite import Aggregate, Case, Suite, TargetSpec
from agentv.model.suite.workspace import Variant
from agentv.model.values.message import Message
from agentv.model.values.response import Attempt, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import TokenUsage, total_cost
from agentv.model.values.values import EMPTY, JsonObject

Status = Literal["passed", "failed", "errored", "skipped", "shown"]
"""`shown`: answered, and not checked, since its case checks nothing (`show_only`)."""

SCHEMA_VERSION = 1


class Trial(Struct, frozen=True):
    """One planned execution of one case on one target.

    Attributes:
        judge: the judge in force where an assertion names none; `forced` when it wins over those too.
        sample: 1..repeat.
        key: hash of everything that determines the outcome.
        repeat: how many samples its case gets on this target.
        aggregate: how the verdicts of those samples become the case's.
        alpha: samples of its case end where they show on which side of the threshold the pass rate lies, wrongly with
            this chance at most; None: all `repeat` samples are run.
        cost_limit_usd: when the samples of its case have cost as much, the others are not run; None: no limit.
        history: the transcript of the earlier cases of its conversation.
        variant: how the agent is equipped; None: the suite has no variants.
        comparison_group: the keys of all trials, its own among them, whose answers are compared with its own; they
            follow each other in a plan.
    """

    suite: Suite
    case: Case
    target: TargetSpec
    threshold: float
    timeout_s: float
    sample: int = 1
    judge: TargetSpec | None = None
    key: str = ""
    repeat: int = 1
    aggregate: Aggregate = "mean"
    alpha: float | None = None
    cost_limit_usd: float | None = None
    history: tuple[Message, ...] = ()
    comparison_group: tuple[str, ...] = ()
    variant: Variant | None = None

    @property
    def has_work(self) -> bool:
        """Whether an agent works on it, whose limits hold, or anything else that has a workspace, tools or a budget."""
        case, target = self.case, self.target
        has_agent = target.upstream is not None or target.is_agent
        return (
            has_agent
            or bool(getattr(target.settings, "otel", False))
            or case.workspace is not None
            or bool(case.tools)
            or self.budget_usd is not None
        )

    @property
    def budget_usd(self) -> float | None:
        """What its model calls may cost, as its case says, else its suite; None: there is no limit but the run's."""
        own = self.case.limits.budget_usd
        return own if own is not None else self.suite.run.trial_budget_usd

    @property
    def variant_name(self) -> str | None:
        """The name of the variant; None: the suite has none."""
        return None if self.variant is None else self.variant.name

    @property
    def user_model(self) -> TargetSpec | None:
        """The model that its simulated user is played by; None: it has no user, or a function plays it."""
        user = self.case.user
        return None if user is None or user.function else user.model or self.judge

    @property
    def in_turn(self) -> bool:
        """Whether it runs after the sample of its case before it, which decides whether it does."""
        return self.alpha is not None or self.cost_limit_usd is not None

    def judge_called(self, name: str | None) -> TargetSpec | None:
        """The command line's judge, else the judge of that name, else the trial's own; None if no judge is set."""
        suite = self.suite
        named = suite.judges.get(name) if isinstance(name, str) and suite.forced_judge is None else None
        return named or self.judge


class Score(Struct, frozen=True):
    """The grade of one assertion inside a finished trial."""

    entry: AssertionEntry
    grade: Grade
    duration_ms: float


class TrialResult(Struct, frozen=True):
    """One finished trial.

    Attributes:
        score: 0..1; None when errored, skipped or shown: errors never count as quality.
        error: why there is no verdict; None otherwise.
        input: what the target received, in its last call if there were several.
        turns: the answer to each turn, of a case with `turns` or `conversation_id`.
        attempts: how many times the target was called.
        retries: the calls that gave no answer and were retried.
        timestamp: when it finished, ISO 8601 in UTC.
        stopped: why its case gets no more samples, where they may end early and it is the last of them.
        work: what an agent did, until it is stored; None: the case has no workspace and no tools.
        stored: where that is stored.
        reused: the answers were there before: another run, a cassette or the cache gave them, or an older row of this
            run has them; nobody was paid.
        judge_cost_usd, judge_token_usage: what its judges took, apart from the target's `cost_usd` and `token_usage`.
        user_done: how the conversation with a simulated user ended; None: it has none, or it is errored.
        user_cost_usd, user_token_usage: what that user took.
        notes: what is noteworthy of its model calls, such as that the agent counts them differently.
        context, response_metadata: what the target's reply says besides its output.
        thoughts: the block that began the answer and was not graded.
        finish_reason: why the model stopped, in the provider's terms; of the last turn.
        time_to_first_token_ms: of the target's call; the longest of several turns.
    """

    trial: Trial
    status: Status
    score: float | None
    output: str | None
    input: tuple[Message, ...]
    scores: tuple[Score, ...]
    error: Failure | None
    duration_ms: float
    timestamp: str
    attempts: int = 1
    messages: tuple[Message, ...] = ()
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    judge_cost_usd: float | None = None
    metadata: JsonObject = field(default=EMPTY)
    turns: tuple[TargetResponse, ...] = ()
    retries: tuple[Attempt, ...] = ()
    judge_token_usage: TokenUsage | None = None
    reused: bool = False
    stopped: SamplingStop | None = None
    work: AgentWork | None = None
    stored: StoredWork | None = None
    notes: tuple[str, ...] = ()
    context: tuple[RetrievedText, ...] = ()
    response_metadata: JsonObject = field(default=EMPTY)
    thoughts: str = ""
    finish_reason: str | None = None
    time_to_first_token_ms: float | None = None
    user_done: UserDone | None = None
    user_cost_usd: float | None = None
    user_token_usage: TokenUsage | None = None

    @property
    def spent_usd(self) -> float | None:
        """What all its calls cost, also those of judges and users, US dollars; None if no price is known."""
        return total_cost(self.cost_usd, self.judge_cost_usd, self.user_cost_usd)
