"""A suite and its cases, as loaded: everything resolved, rendered and checked (SPEC sections 3 and 4)."""

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
"""What the lower bound of a corrected pass rate must reach where nothing else is said."""
Until = Literal["decided"]


class Retry(Struct, frozen=True):
    """When to retry a failed call; the defaults are AgentV's.

    Attributes:
        max_retries: attempts after the first; attempts refused because of a rate limit do not count. 0: one attempt.
        initial_delay_ms, max_delay_ms, backoff_factor: of the longest wait after each attempt.
        status_codes: of HTTP, that another attempt may turn into an answer; empty: what the statuses mean.
    """

    max_retries: int = 3
    initial_delay_ms: float = 1000.0
    max_delay_ms: float = 60_000.0
    backoff_factor: float = 2.0
    status_codes: tuple[int, ...] = ()


DEFAULT_RETRY = Retry()


class Rate(Struct, frozen=True):
    """Rate limits of a target; None: no limit of its own."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class Variable(Struct, frozen=True):
    """A setting of a target that an environment variable may give (`registry.fields.FromEnvironment`).

    Attributes:
        setting: its key, such as `api_key`.
        names: the variables that are looked for, in their order.
        found: the one that gave the setting; None where the author gives it, or none is set.
        missing: nobody gives it, and without it the target cannot be asked.
        secret: its value must never be written.
    """

    setting: str
    names: tuple[str, ...]
    found: str | None = None
    missing: bool = False
    secret: bool = False


class TargetSpec(Struct, frozen=True):
    """A configured system under test, or judge: the provider's frozen settings and the keys of every target.

    Attributes:
        settings: the provider's own options, an instance of its settings dataclass, an `agentv.ports.Connectable`.
        price: of its tokens; None: that of the price list.
        thoughts: whether a thought block that begins an answer is part of the output that is graded.
        secrets: values that must never reach a file, a log or a report.
        fingerprint: sha256 of the settings without secrets, and of the target's own file where it has one.
        span: where it is named; None on a command line, and for one made in Python.
        variables: the settings that the environment may give.
        unset: what its placeholders name and the environment lacks, where it may never be asked.
        files: its own files and their sha256 when it was loaded.
        unfollowed: it starts programs of which no file is known, so that a change of theirs is not seen.
        search: where what it starts is looked for; None: as this process has it.
        plugin: package and version of the plugin that its provider is of; empty: the provider is built in.
        upstream: the API that the gateway forwards its model calls to; None: they do not pass the gateway.
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
        """Settings that must be set before it can be called."""
        return tuple(one for one in self.variables if one.missing)

    @property
    def model(self) -> str:
        """Provider and model; provider and a hash of the settings if it has no model."""
        named = self.public.get("model")
        return f"{self.provider}:{named if isinstance(named, str) else self.fingerprint[:12]}"

    @property
    def embeds(self) -> bool:
        """Whether its API computes embeddings."""
        return bool(getattr(self.settings, "embeds", False))

    @property
    def is_agent(self) -> bool:
        """Whether an agent works on the cases."""
        return bool(getattr(self.settings, "is_agent", False))

    @property
    def calls(self) -> str:
        """What an answer comes from, such as `server` or `nothing`."""
        return str(getattr(self.settings, "calls", "program"))


class RunSettings(Struct, frozen=True):
    """The suite's `run:` block. None: not said, so the next level decides.

    Attributes:
        until: `decided`: samples of a case end where its pass rate is decided, and `repeat` is the most that it gets.
        alpha: the largest chance of a wrong decision then.
        cost_limit_usd: when the samples of a case have cost as much, no more of them are run.
        trust_data: rows that `tests:` pulls in, and CSV files, may name code and read the environment.
        cluster: a key of `metadata` or `vars`, or a template, whose equal values make cases dependent.
        max_turns, max_tool_calls, trial_budget_usd: of an agent in one trial.
        gate: `corrected`: the corrected pass rate decides the run, and not the verdict of each case.
        min_pass_rate: what its lower bound must reach then.
        on_limit: `grade`: a trial whose agent reached a limit, or its time, is graded all the same.
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
    """How well a judge must agree with people, by their labels; None: no matter."""

    tpr: float | None = None
    tnr: float | None = None


class SkillMinimums(Struct, frozen=True):
    """What the queries of every skill of `activation` must reach; None: no matter."""

    recall: float | None = None
    precision: float | None = None


class SimulatedUser(Struct, frozen=True):
    """Who talks with the target in a case, instead of questions that are written down.

    Attributes:
        goal, persona: what it wants, and how it behaves.
        knows: facts that it gives when asked.
        start: its first message; empty: it writes that one, too.
        max_turns: how many messages it writes at most.
        model: writes them; None: the judge in force, unless `function` is set.
        function: `file.py:name` that writes them instead, absolute; empty: none.
        sha256: of the function's code.
        output: what is graded as the output: the target's last answer, all its answers, or what both sides said.
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
        """What determines its part of a conversation, beside the judge in force, and what is graded."""
        model = self.model and (self.model.name, self.model.fingerprint)
        said = (self.goal, self.persona, self.knows, self.start, self.max_turns, model, self.function, self.sha256)
        return said if self.output == "answer" else (*said, self.output)


class Case(Struct, frozen=True):
    """One test in a suite.

    Attributes:
        expected_output: the reference answer as messages; not graded by itself.
        assertions: in merge order (SPEC section 7.4), includes expanded.
        target, judge: this case's own; None: the suite's.
        turns: questions that are asked one after the other; `input` is then what comes before the first.
        flow: how the turns follow each other.
        transform: applied to the answer before it is graded; None: it is graded as it is.
        preamble: how many messages of `input` are the suite's; a conversation holds them once.
        conversation_id: cases that share one continue each other.
        depends_on: cases that must pass first.
        on_dependency_failure: what becomes of it where one of them does not: it is not run, errored, or run.
        show_only: it checks nothing; its answers are shown, and have no verdict.
        asks_judge: the judge in force is asked, whatever targets there are: a question about a prompt's description.
        prompt_id: of the prompt that gave its input; None: the case gave it itself.
        id_suffix: the end of its id, such as `[locale=de]`, where it is one of the combinations of list values that
            one entry stands for.
        sha256: hash of all that was authored for this case, its assertions included.
        cluster_key, cluster: the `cluster:` in force, and this case's value for it; None if none is set.
        workspace: what its trials' agents work in; None: it has none.
        tools: scripted MCP servers, one instance of each for a trial.
        solution: what makes the case pass; it determines no outcome, and no key.
        limits: how much its agent may do.
        user: talks with the target, after `input`; None: `input` or `turns` are the questions.
        position: its place in the suite, from 1, that it has with each prompt; 0: unknown. A plan sets it.
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
        """Its assertions, those of its turns and those inside others too."""
        for entry in (*self.assertions, *(one for turn in self.turns for one in turn.assertions)):
            yield from entry.nested()

    @property
    def has_turns(self) -> bool:
        """Whether its target is asked several questions, after what `input` says."""
        return bool(self.turns) or self.user is not None

    @property
    def asks_first(self) -> bool:
        """Whether its `input` ends with a question, which the target answers before the simulated user goes on."""
        return self.user is not None and bool(self.input) and self.input[-1].role == "user"


class Cases(Protocol):
    """The cases of a suite: a tuple, or a file that is read again at each pass so that memory stays flat."""

    def __iter__(self) -> Iterator[Case]:
        """Iterate over all cases, in file order."""

    def __len__(self) -> int:
        """The number of cases."""


class Suite(Struct, frozen=True):
    """One eval file, loaded.

    Attributes:
        path: the file, absolute; empty for a suite built in Python.
        targets: the systems under test, after flags and defaults.
        generators: functions of the user's that were called to know the cases, as `file.py:name`.
        prompts: id → label, of the prompts that every case runs with; empty where cases give their input.
        prompt_texts: id → what the prompt says, with its placeholders.
        judge: the suite's own judge.
        forced_judge: the one of the command line, which overrides all others.
        default_judge: the project's, if nothing else sets one.
        judges: those that assertions name, and those that targets name, by their names; what embeds for them, too.
        secrets: values out of its targets, judges and environment that must never be written.
        unsearched: names of keys and variables whose values look like ordinary text, and are not redacted.
        above: paths that were found in a directory above the file → what they mean.
        tally: (own repeat, whether it has a target of its own) → how many cases; None: count them.
        files: path → sha256 of every file that was read for this suite.
        links: the cases that depend on others, by id; empty for most suites, which then run in any order.
        compares: an assertion compares the answers that a case gets from its prompts and targets.
        exam: what makes it the exam of a prompt; None for other suites.
        root: the repository that it stands in, absolute.
        graders: the files that its grades depend on, as they were when it was loaded; None: nobody looked.
        env: what `{{ env.NAME }}`, targets and scripts of this suite see over the process environment.
        env_sha256: a hash of what its own `env:` block sets; empty without one.
        own_env: the variables of its own `env:` block alone: what confined agents get.
        workspaces: what its cases ask of workspaces.
        variants: ways to equip the same agent; every case runs with each; empty: there is one, without a name.
        judge_minimums: required of every judge that grades its cases; None if nothing is required.
        skill_minimums: required of every skill of `activation`, in place of passed queries; None: queries must pass.
        dialect: what its file is, such as "a promptfoo configuration"; None: an eval file.
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
