"""Trials and their results (SPEC sections 1, 10 and 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from agentv.model.run.grade import Grade
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.conversation import UserDone
from agentv.model.suite.suite import Aggregate, Case, Suite, TargetSpec
from agentv.model.suite.workspace import SandboxName, Variant
from agentv.model.values.message import Message
from agentv.model.values.response import Attempt, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.trace import Trace, WorkspaceChanges
from agentv.model.values.usage import TokenUsage, total_cost
from agentv.model.values.values import EMPTY, JsonObject

DEFAULT_ALPHA = 0.05

Why = Literal["above", "below", "gate", "errored", "undecided"]


class SamplingStop(Struct, frozen=True):
    """Why a case got no more samples; part of its last sample's row.

    Attributes:
        why: its pass rate is shown to be `above` or `below` the threshold; a required assertion failed (`gate`), or a
            sample `errored`, which no further sample can change; `undecided`: it had the maximum number of samples.
        samples: number of graded samples.
        passed: number of those that passed.
        low, high: anytime-valid bounds of the pass rate, each with confidence 1 − alpha.
    """

    why: Why
    samples: int
    passed: int
    low: float
    high: float

    @property
    def side(self) -> Literal["above", "below"] | None:
        """On which side of the threshold the samples show the rate; None where they do not."""
        return self.why if self.why == "above" or self.why == "below" else None  # noqa: PLR1714  # mypy reads it so


class EarlyCase(Struct, frozen=True):
    """A case that failed or was not decided, of those whose samples end where they are.

    Attributes:
        status: `passed` or `failed`.
        alpha: the chance, at most, with which each of the bounds in `stopped` is wrong.
        stopped: its samples, and bounds of its pass rate that hold although the samples ended where they did.
    """

    test_id: str
    suite: str
    target: str
    prompt_id: str | None
    status: Literal["passed", "failed"]
    alpha: float
    stopped: SamplingStop


class EarlyStops(Struct, frozen=True):
    """How the cases of a run ended whose samples end where they are decided.

    Attributes:
        alpha: the largest chance that one of them was decided wrongly; so of all `cases` a share of that at most is
            expected to be.
        decided: cases whose samples show on which side of the threshold the pass rate is, or that a gate failed.
        undecided: cases that had all their samples and are judged by the share that passed.
        samples: that were run, of these and of errored cases.
        spared: samples that were not needed.
        cases: that were sampled, decided or not, errored ones included.
        confirmed: of those that the samples decided, how many hold together: a share of alpha of them at most is
            expected to be decided wrongly (`stats.discoveries`).
        by_gate: of those decided, how many failed a required assertion, which is no estimate.
        by_case: those that failed, then the undecided that passed, the lowest share first; a bounded number.
        omitted: how many more there are.
    """

    alpha: float
    decided: int
    undecided: int
    samples: int
    spared: int
    by_case: tuple[EarlyCase, ...] = ()
    omitted: int = 0
    cases: int = 0
    confirmed: int = 0
    by_gate: int = 0


class AgentWork(Struct, frozen=True):
    """The work of one trial.

    Attributes:
        sandbox: what confined the agent; None: there was no workspace.
        trace: all that it did, with the calls that our tool servers saw; None: nothing is known of it.
        changes: what it changed in its workspace; None: there was none, or it could not be compared.
        logs: name → what its program printed.
        kept: absolute path of the workspace, where it is kept.
        ignored: globs of files that the changes leave out.
        tool_state: scripted MCP server → the state that its functions kept; None: it had none.
    """

    sandbox: SandboxName | None = None
    trace: Trace | None = None
    changes: WorkspaceChanges | None = None
    logs: Mapping[str, bytes] = field(default_factory=dict)
    kept: str | None = None
    ignored: tuple[str, ...] = ()
    tool_state: JsonObject | None = None

    @property
    def agent_version(self) -> str:
        """The version that the agent reports; empty where it reports none."""
        return self.trace.agent_version if self.trace is not None else ""


class StoredWork(Struct, frozen=True):
    """What a row says of the work of its agent.

    Attributes:
        sandbox: what confined the agent; None: it had no workspace.
        agent_version: as the agent reports it.
        agent_turns: calls of its model; where it reports none, its messages.
        trace_path, diff_path, native_path, workspace_path: relative to the directory of the run; None if not stored.
        work_path, work_sha256: of what a later run needs to grade the work again, hashes of the others among it.
    """

    sandbox: SandboxName | None = None
    agent_version: str | None = None
    agent_turns: int | None = None
    trace_path: str | None = None
    diff_path: str | None = None
    native_path: str | None = None
    workspace_path: str | None = None
    work_path: str | None = None
    work_sha256: str | None = None


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
