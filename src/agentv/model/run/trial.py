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
    """Why sampling of a case stopped; part of the row of its last sample.

    Attributes:
        why: the pass rate is shown to be `above` or `below` the threshold; a required assertion failed (`gate`) or a
            sample `errored`, which no further sample can change; `undecided`: it had the maximum number of samples.
        samples: number of graded samples.
        passed: number of graded samples that passed.
        low, high: anytime-valid bounds of the pass rate, each with confidence 1 − alpha.
    """

    why: Why
    samples: int
    passed: int
    low: float
    high: float

    @property
    def side(self) -> Literal["above", "below"] | None:
        """The side of the threshold on which the pass rate is shown to be; None if it is not shown."""
        return self.why if self.why == "above" or self.why == "below" else None  # noqa: PLR1714  # narrows the type


class EarlyCase(Struct, frozen=True):
    """A case with sampling until decided that failed or was not decided.

    Attributes:
        status: `passed` or `failed`.
        alpha: maximum probability that each of the bounds in `stopped` is wrong.
        stopped: its samples, and bounds of its pass rate that are valid despite stopping early.
    """

    test_id: str
    suite: str
    target: str
    prompt_id: str | None
    status: Literal["passed", "failed"]
    alpha: float
    stopped: SamplingStop


class EarlyStops(Struct, frozen=True):
    """Results of the cases of a run that are sampled until decided.

    Attributes:
        alpha: maximum probability that a case was decided wrongly, and so the maximum expected share of wrong decisions
            among all `cases`.
        decided: number of cases whose pass rate is shown to be on one side of the threshold, or that failed a gate.
        undecided: number of cases that had all their samples and are decided by the share that passed.
        samples: number of samples that ran, including those of errored cases.
        spared: number of samples that were not needed.
        cases: number of sampled cases, decided or not, including errored ones.
        confirmed: number of cases decided by their samples that hold jointly: at most a share of alpha of them is
            expected to be wrong (`stats.discoveries`).
        by_gate: number of decided cases that failed a required assertion, which needs no estimate.
        by_case: the failed cases, then the undecided ones that passed, by ascending pass rate; a limited number.
        omitted: number of such cases that are not in `by_case`.
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
    """The work of an agent in one trial.

    Attributes:
        sandbox: sandbox of the agent; None without a workspace.
        trace: everything that it did, with the calls that our tool servers saw; None if unknown.
        changes: changes to the workspace; None if there was none, or if it could not be compared.
        logs: file name → output of its program.
        kept: absolute path of the workspace, if it is kept.
        ignored: globs of files that are left out of the changes.
        tool_state: scripted MCP server → state kept by its functions; None without such servers.
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
        """The version that the agent reports; empty if unknown."""
        return self.trace.agent_version if self.trace is not None else ""


class StoredWork(Struct, frozen=True):
    """The work of an agent as stored in a row.

    Attributes:
        sandbox: sandbox of the agent; None without a workspace.
        agent_version: version that the agent reports.
        agent_turns: number of its model calls, or of its messages if it reports no calls.
        trace_path, diff_path, native_path, workspace_path: relative to the directory of the run; None if not stored.
        work_path, work_sha256: path and hash of the file with what a later run needs to grade the work again, including
            hashes of the other files.
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
"""Status of a trial or case; `shown`: answered, but not graded, because the case has no checks (`show_only`)."""

SCHEMA_VERSION = 1


class Trial(Struct, frozen=True):
    """One planned execution of a case on a target.

    Attributes:
        judge: the judge for assertions that do not name one.
        sample: number of the sample, 1..repeat.
        key: hash of everything that determines the result.
        repeat: number of samples of the case on this target.
        aggregate: how the verdicts of the samples are combined into the case's.
        alpha: stop sampling the case when its pass rate is shown to be on one side of the threshold, with at most this
            probability of error; None to run all `repeat` samples.
        cost_limit_usd: run no more samples of the case when they have cost this much; None for no limit.
        history: transcript of the earlier cases of its conversation.
        variant: the variant of the agent; None if the suite has no variants.
        comparison_group: keys of all trials whose answers are compared with each other, including its own; they are
            adjacent in a plan.
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
        """Whether the trial needs an agent's surroundings: an agent, a workspace, tools, a trace, or a budget."""
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
        """Maximum cost of its model calls, from the case or else the suite; None if only the run's budget applies."""
        own = self.case.limits.budget_usd
        return own if own is not None else self.suite.run.trial_budget_usd

    @property
    def variant_name(self) -> str | None:
        """The name of the variant; None if the suite has no variants."""
        return None if self.variant is None else self.variant.name

    @property
    def user_model(self) -> TargetSpec | None:
        """The model that plays the simulated user; None if there is no such user, or a function plays it."""
        user = self.case.user
        return None if user is None or user.function else user.model or self.judge

    @property
    def is_sequential(self) -> bool:
        """Whether it waits for the previous sample of its case, whose result decides whether it runs."""
        return self.alpha is not None or self.cost_limit_usd is not None

    def judge_called(self, name: str | None) -> TargetSpec | None:
        """Return the command line's judge, or else the judge with this name, or else the trial's own, if any."""
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
        score: 0..1; None if errored, skipped or shown, because errors never count as quality.
        error: why there is no verdict; None if there is one.
        input: messages that the target received, in its last call if there were several.
        turns: the answer to each turn, for cases with `turns` or `conversation_id`.
        attempts: number of calls of the target.
        retries: the failed calls that were retried.
        timestamp: when it finished, ISO 8601 in UTC.
        stopped: why sampling of its case stopped, if it may stop early and this is the last sample.
        work: the agent's work, until it is stored; None without a workspace and tools.
        stored: the agent's work after it was stored.
        reused: whether the answers come from another run, a cassette, the cache or an older row of this run, so that no
            calls were paid for.
        judge_cost_usd, judge_token_usage: usage of its judges, not included in `cost_usd` and `token_usage`.
        user_done: how the conversation with a simulated user ended; None if there is no such user, or if it errored.
        user_cost_usd, user_token_usage: usage of the simulated user.
        notes: remarks on its model calls, such as that the agent counts them differently.
        context, response_metadata: the retrieved texts, and other data in the target's reply.
        thoughts: the thought block that began the answer and was not graded.
        finish_reason: why the model stopped, in the provider's terms; that of the last turn.
        time_to_first_token_ms: of the target's call; the longest over several turns.
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
        """Cost of all its calls, including those of judges and simulated users, in US dollars; None if unknown."""
        return total_cost(self.cost_usd, self.judge_cost_usd, self.user_cost_usd)
