"""A suite and its cases as loaded: all references resolved, templates rendered, values checked (SPEC 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct, field

from agentv.model.suite.assertion import AssertionEntry, Transform
from agentv.model.suite.conversation import PLAIN, Dependency, Flow, Link, OnDependencyFailure, Turn
from agentv.model.suite.exam import Exam
from agentv.model.suite.files import GraderFiles, SearchPaths
from agentv.model.suite.tools import ModelUpstream, ScriptedServer
from agentv.model.suite.workspace import NO_WORK_LIMITS, Solution, Variant, WorkLimits, WorkspaceSpec, WorkspaceUse
from agentv.model.values.message import Message
from agentv.model.values.usage import Price
from agentv.model.values.values import EMPTY, JsonObject, Span

if TYPE_CHECKING:
    from agentv.errors import Diagnostic

DEFAULT_THRESHOLD = 0.8
DEFAULT_WORKERS = 10
DEFAULT_TIMEOUT_S = 300.0
AGENT_JUDGE_TIMEOUT_S = 900.0
JUDGE_TIMEOUT_S = 120.0
CODE_TIMEOUT_S = 60.0

Aggregate = Literal["mean", "pass_any", "pass_all", "majority"]
GradedOutput = Literal["answer", "answers", "transcript"]
Gate = Literal["corrected"]

MIN_PASS_RATE = 0.8
"""Default for the lower bound that a corrected pass rate must reach."""
Until = Literal["decided"]


class Retry(Struct, frozen=True):
    """When to retry a failed call. The defaults are AgentV's.

    Attributes:
        max_retries: attempts after the first; attempts refused by a rate limit do not count.
        initial_delay_ms, max_delay_ms, backoff_factor: the longest wait is min(max, initial × factor^(attempt − 1)).
        status_codes: HTTP statuses to retry; empty to decide by the meaning of the status.
    """

    max_retries: int = 3
    initial_delay_ms: float = 1000.0
    max_delay_ms: float = 60_000.0
    backoff_factor: float = 2.0
    status_codes: tuple[int, ...] = ()


DEFAULT_RETRY = Retry()


class Rate(Struct, frozen=True):
    """Rate limits of a target; None for no limit of its own."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class Variable(Struct, frozen=True):
    """A setting of a target that can come from an environment variable (`registry.fields.FromEnvironment`).

    Attributes:
        setting: key of the setting, such as `api_key`.
        names: the variables, in lookup order.
        found: the variable that was used; None if the target's definition sets it, or no variable is set.
        missing: whether the setting is required but set nowhere.
        secret: whether the value must never be written.
    """

    setting: str
    names: tuple[str, ...]
    found: str | None = None
    missing: bool = False
    secret: bool = False


class TargetSpec(Struct, frozen=True):
    """A configured target or judge: the provider's frozen settings, and the keys that all targets have.

    Attributes:
        settings: the provider's own options: an instance of its settings dataclass, which is an
            `agentv.ports.Connectable`.
        price: price of its tokens; None to look it up in the price list.
        thoughts: whether a thought block that begins an answer is kept in the graded output.
        secrets: values that must never reach a file, a log or a report.
        fingerprint: sha256 of the settings without secrets, and of the target's own files if it has any.
        span: where it is defined; None if defined on the command line or in Python.
        variables: the settings that can come from the environment.
        unset: errors about unset variables in its placeholders, kept back for targets that may never be called.
        files: the target's own files → their sha256 when it was loaded.
        unfollowed: whether it starts programs whose files are not known, so that changes to them go unnoticed.
        search: where to look for the programs and modules that it uses; None for the search paths of this process.
        plugin: package and version of the plugin that provides it; empty for built-in providers.
        upstream: the API to which the gateway forwards its model calls; None if they do not pass the gateway.
    """

    name: str
    provider: str
    settings: object
    env: Mapping[str, str] = field(default_factory=dict)
    judge: str | None = None
    retry: Retry = Retry()
    rate: Rate | None = None
    price: Price | None = None
    workers: int | None = None
    timeout_s: float | None = None
    allow_empty: bool = False
    thoughts: Literal["strip", "keep"] = "strip"
    secrets: frozenset[str] = frozenset()
    public: JsonObject = field(default=EMPTY)
    fingerprint: str = ""
    span: Span | None = None
    variables: tuple[Variable, ...] = ()
    unset: tuple[Diagnostic, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    unfollowed: bool = False
    search: SearchPaths | None = None
    plugin: str = ""
    upstream: ModelUpstream | None = None

    @property
    def missing(self) -> tuple[Variable, ...]:
        """Required settings that are set nowhere; the target cannot be called without them."""
        return tuple(one for one in self.variables if one.missing)

    @property
    def model(self) -> str:
        """`provider:model`, or the provider and a prefix of the fingerprint if the settings name no model."""
        named = self.public.get("model")
        return f"{self.provider}:{named if isinstance(named, str) else self.fingerprint[:12]}"

    @property
    def embeds(self) -> bool:
        """Whether its API computes embeddings."""
        return bool(getattr(self.settings, "embeds", False))

    @property
    def is_agent(self) -> bool:
        """Whether the target is an agent."""
        return bool(getattr(self.settings, "is_agent", False))

    @property
    def calls(self) -> str:
        """What the target calls for an answer, such as `server`, `program` or `nothing`."""
        return str(getattr(self.settings, "calls", "program"))


class RunSettings(Struct, frozen=True):
    """The suite's `run:` block. None: not set here, so a lower level applies, in the end the default.

    Attributes:
        until: `decided`: stop sampling a case when its pass rate is decided, after at most `repeat` samples.
        alpha: maximum probability of a wrong decision with `until`.
        cost_limit_usd: run no more samples of a case whose samples have cost this much.
        trust_data: whether CSV files and rows that `tests:` includes may name code and read the environment.
        cluster: a key of `metadata` or `vars`, or a template; cases with equal values are not independent.
        max_turns, max_tool_calls, trial_budget_usd: limits of an agent in one trial.
        gate: `corrected`: the run passes by its corrected pass rate instead of the verdicts of its cases.
        min_pass_rate: minimum of the lower bound of the corrected pass rate, with `gate`.
        on_limit: `grade`: grade a trial even if its agent reached a limit or timed out.
    """

    workers: int | None = None
    repeat: int | None = None
    aggregate: Aggregate | None = None
    timeout_s: float | None = None
    max_errors: int | None = None
    retry: Retry | None = None
    cache: bool | None = None
    budget_usd: float | None = None
    budget_tokens: int | None = None
    until: Until | None = None
    alpha: float | None = None
    cost_limit_usd: float | None = None
    trust_data: bool | None = None
    cluster: str | None = None
    max_turns: int | None = None
    max_tool_calls: int | None = None
    on_limit: Literal["error", "grade"] | None = None
    trial_budget_usd: float | None = None
    gate: Gate | None = None
    min_pass_rate: float | None = None


class JudgeMinimums(Struct, frozen=True):
    """Minimum agreement of a judge with human labels; None for no minimum."""

    tpr: float | None = None
    tnr: float | None = None


class SkillMinimums(Struct, frozen=True):
    """Minimum recall and precision of every skill in `activation`; None for no minimum."""

    recall: float | None = None
    precision: float | None = None


class SimulatedUser(Struct, frozen=True):
    """A simulated user that talks to the target, in place of scripted turns.

    Attributes:
        goal, persona: what it wants, and how it behaves.
        knows: facts that it gives when asked.
        start: its first message; empty if it writes that one too.
        max_turns: maximum number of messages that it writes.
        model: the model that plays the user; None for the judge in force.
        function: `file.py:name` of a function that plays the user instead, with an absolute path; empty for none.
        sha256: hash of the function's code.
        output: what is graded: the target's last answer, all its answers, or the whole transcript.
    """

    goal: str = ""
    persona: str = ""
    knows: JsonObject = field(default=EMPTY)
    start: str = ""
    max_turns: int = 10
    model: TargetSpec | None = None
    function: str = ""
    sha256: str = ""
    output: GradedOutput = "answer"

    def facts(self) -> tuple[object, ...]:
        """Return what determines its messages and the graded output, except the judge in force; for hashes."""
        model = self.model and (self.model.name, self.model.fingerprint)
        facts = (self.goal, self.persona, self.knows, self.start, self.max_turns, model, self.function, self.sha256)
        return facts if self.output == "answer" else (*facts, self.output)


class Case(Struct, frozen=True):
    """One case of a suite.

    Attributes:
        expected_output: the reference answer, as messages; not graded by itself.
        assertions: in merge order (SPEC section 7.4), with includes expanded.
        target, judge: the case's own; None for the suite's.
        turns: turns to run one after the other; `input` then holds the messages before the first.
        flow: how the turns run and are scored.
        transform: applied to the answer before grading; None to grade it as it is.
        preamble: number of messages at the start of `input` that come from the suite; a conversation has them once.
        conversation_id: cases with the same id continue one conversation.
        depends_on: cases that must pass first.
        on_dependency_failure: what to do if one of them does not pass: skip this case, give it an error, or run it.
        show_only: whether the case has no checks, so that its answers are only shown, without a verdict.
        asks_judge: whether the judge in force is called in place of the targets, as for queries about a prompt's
            description.
        prompt_id: id of the prompt that gave the input; None if the case has its own.
        id_suffix: end of the id, such as `[locale=de]`, if one entry with lists of values expands to several cases.
        sha256: hash of everything authored for this case, including its assertions.
        cluster_key, cluster: the `cluster:` in force and this case's value for it; None if none is set.
        workspace: workspace of each trial; None if the case has none.
        tools: scripted MCP servers; every trial gets its own instances.
        solution: a known good result; it affects no result and no cache key.
        limits: limits of the agent's work.
        user: simulated user that talks to the target after `input`; None if `input` or `turns` are the questions.
        position: position in the suite, from 1, the same for every prompt; 0 until a plan sets it.
    """

    id: str
    input: tuple[Message, ...]
    assertions: tuple[AssertionEntry, ...]
    criteria: str | None = None
    description: str | None = None
    expected_output: tuple[Message, ...] = ()
    vars: JsonObject = field(default=EMPTY)
    metadata: JsonObject = field(default=EMPTY)
    tags: tuple[str, ...] = ()
    threshold: float | None = None
    repeat: int | None = None
    timeout_s: float | None = None
    target: TargetSpec | None = None
    judge: TargetSpec | None = None
    prompt_id: str | None = None
    id_suffix: str = ""
    sha256: str = ""
    span: Span | None = None
    turns: tuple[Turn, ...] = ()
    flow: Flow = PLAIN
    transform: Transform | None = None
    preamble: int = 0
    conversation_id: str | None = None
    depends_on: tuple[Dependency, ...] = ()
    on_dependency_failure: OnDependencyFailure = "skip"
    asks_judge: bool = False
    show_only: bool = False
    cluster_key: str | None = None
    cluster: str | None = None
    workspace: WorkspaceSpec | None = None
    tools: tuple[ScriptedServer, ...] = ()
    solution: Solution | None = None
    limits: WorkLimits = NO_WORK_LIMITS
    user: SimulatedUser | None = None
    position: int = 0

    def all_assertions(self) -> Iterator[AssertionEntry]:
        """Yield all assertions, including those of turns and nested ones."""
        for entry in (*self.assertions, *(one for turn in self.turns for one in turn.assertions)):
            yield from entry.nested()

    @property
    def has_turns(self) -> bool:
        """Whether the target is called several times, after the messages of `input`."""
        return bool(self.turns) or self.user is not None

    @property
    def asks_first(self) -> bool:
        """Whether `input` ends with a user message, which the target answers before the simulated user takes over."""
        return self.user is not None and bool(self.input) and self.input[-1].role == "user"


class Cases(Protocol):
    """The cases of a suite: a tuple, or a file that is read again on each iteration so that memory stays flat."""

    def __iter__(self) -> Iterator[Case]:
        """Iterate over the cases, in file order."""

    def __len__(self) -> int:
        """Return the number of cases."""


class Suite(Struct, frozen=True):
    """A loaded eval file.

    Attributes:
        path: absolute path of the file; empty for a suite built in Python.
        targets: the targets, after flags and defaults.
        generators: user functions that were called to generate cases, as `file.py:name`.
        prompts: id → label of the prompts that every case runs with; empty if cases have their own input.
        prompt_texts: id → text of the prompt, with its placeholders.
        judge: the suite's own judge.
        forced_judge: the judge given on the command line, which overrides all others.
        default_judge: the project's judge, used if nothing else sets one.
        judges: judges and embedders that assertions and targets name, by name.
        secrets: values of its targets, judges and environment that must never be written.
        unsearched: names of keys and variables whose values are not redacted, because they look like ordinary text.
        above: paths that were resolved in a directory above the file → the files found there.
        tally: (the case's own repeat, whether it has its own target) → number of such cases; None if not yet counted.
        files: path → sha256 of every file that was read for this suite.
        links: id → dependencies, of cases that depend on others; empty if cases can run in any order.
        compares: whether an assertion compares the answers of different prompts and targets to the same case.
        exam: the exam of a prompt that the suite is; None for other suites.
        root: absolute path of the repository that contains it.
        graders: the files that its grades depend on, with their hashes at load time; None if they were not collected.
        env: variables that `{{ env.NAME }}`, targets and scripts see on top of the process environment.
        env_sha256: hash of the suite's own `env:` block; empty without one.
        own_env: the variables of the suite's own `env:` block, which confined agents get.
        workspaces: the sandboxes and existing directories that its cases need.
        variants: variants that every case runs with; empty if there is only one, without a name.
        judge_minimums: minimums for every judge that grades its cases; None if none exist.
        skill_minimums: minimums for every skill in `activation`, which replace the verdicts of queries; None if the
            queries themselves must pass.
        dialect: kind of the file if it is not an eval file, such as "a promptfoo configuration"; else None.
    """

    name: str
    cases: Cases
    path: str = ""
    description: str | None = None
    targets: tuple[TargetSpec, ...] = ()
    generators: tuple[str, ...] = ()
    prompts: Mapping[str, str | None] = field(default_factory=dict)
    prompt_texts: Mapping[str, str] = field(default_factory=dict)
    judge: TargetSpec | None = None
    forced_judge: TargetSpec | None = None
    default_judge: TargetSpec | None = None
    judges: Mapping[str, TargetSpec] = field(default_factory=dict)
    threshold: float | None = None
    tags: tuple[str, ...] = ()
    run: RunSettings = RunSettings()
    env: Mapping[str, str] = field(default_factory=dict)
    env_sha256: str = ""
    metadata: JsonObject = field(default=EMPTY)
    secrets: frozenset[str] = frozenset()
    unsearched: frozenset[str] = frozenset()
    above: Mapping[str, str] = field(default_factory=dict)
    tally: Mapping[tuple[int | None, bool], int] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    span: Span | None = None
    links: Mapping[str, Link] = field(default_factory=dict)
    compares: bool = False
    exam: Exam | None = None
    graders: GraderFiles | None = None
    root: str = ""
    variants: tuple[Variant, ...] = ()
    own_env: Mapping[str, str] = field(default_factory=dict)
    workspaces: WorkspaceUse = WorkspaceUse()
    judge_minimums: JudgeMinimums | None = None
    skill_minimums: SkillMinimums | None = None
    dialect: str | None = None
