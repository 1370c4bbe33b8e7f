"""Declared keys of a suite, a case, a run block, a target and an exam (SPEC sections 3, 4, 11 and 12).

Keys whose meaning depends on other keys are declared as `AsNode` and read elsewhere.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from agentv.authoring.fields.decode import AsNode
from agentv.model.suite.assertion import Transform
from agentv.model.suite.suite import Gate, Rate, Retry, Until
from agentv.model.values.usage import Price
from agentv.model.values.values import EMPTY, JsonObject
from agentv.registry.fields import (
    Alias,
    Between,
    Declared,
    Doc,
    Document,
    FileGlobs,
    Fraction,
    Issue,
    Nonempty,
    PromptCode,
    Seconds,
    Text,
    Verbatim,
)
from agentv.registry.settings import RunKeys

Milliseconds = Annotated[float, Between(0)]
Status = Annotated[int, Between(100, 599)]
Usd = Annotated[float, Between(0)]
PerMinute = Annotated[float, Between(0.01)]


class AuthoredRetry(Declared, Struct, frozen=True):
    """When a failed call is retried."""

    max_retries: Annotated[
        Annotated[int, Between(0, 100)] | None,
        Alias(("maxRetries",)),
        Doc("attempts after the first, 3; rate limits do not count; 0: never retry"),
    ] = None
    retry_initial_delay_ms: Annotated[
        Milliseconds | None,
        Alias(("initial_delay_ms",)),
        Doc("maximum wait after the first attempt, 1000; the actual wait is a random share of it"),
    ] = None
    retry_max_delay_ms: Annotated[
        Milliseconds | None, Alias(("max_delay_ms",)), Doc("maximum wait after any attempt, 60000")
    ] = None
    retry_backoff_factor: Annotated[
        Annotated[float, Between(1)] | None,
        Alias(("backoff_factor",)),
        Doc("factor by which the wait grows each time, 2"),
    ] = None
    retry_status_codes: Annotated[
        tuple[Status, ...] | None,
        Alias(("status_codes",)),
        Doc("HTTP statuses to retry; default: 408, 409, 429 and 500 or higher"),
    ] = None

    def validate(self) -> Iterable[Issue]:
        """Yield an issue if the initial delay is longer than the maximum delay."""
        first, longest = self.retry_initial_delay_ms, self.retry_max_delay_ms
        if first is not None and longest is not None and first > longest:
            message = f"the first wait of {first:g} ms is longer than the maximum, {longest:g} ms"
            yield Issue(("retry_initial_delay_ms",), message)

    def over(self, base: Retry) -> Retry:
        """These settings, with those that are not set taken from the base."""
        given = {key.removeprefix("retry_"): value for key, value in asdict(self).items() if value is not None}
        return replace(base, **given)


class AuthoredRate(Declared, Struct, frozen=True):
    """Rate limit of a target."""

    requests_per_minute: Annotated[PerMinute | None, Alias(("rpm", "requests")), Doc("maximum calls per minute")] = None
    tokens_per_minute: Annotated[
        PerMinute | None, Alias(("tpm", "tokens")), Doc("maximum tokens per minute, input and output")
    ] = None

    def validate(self) -> Iterable[Issue]:
        """Yield an issue if no limit is set."""
        if self.requests_per_minute is None and self.tokens_per_minute is None:
            message = "a rate needs 'requests_per_minute' or 'tokens_per_minute'"
            yield Issue((), message, "missing-key")

    @property
    def rate(self) -> Rate:
        """The rate limit for the engine."""
        return Rate(self.requests_per_minute, self.tokens_per_minute)


class AuthoredPrice(Declared, Struct, frozen=True):
    """Price of a target's tokens."""

    input: Annotated[Usd, Doc("US dollars per million input tokens")]
    output: Annotated[Usd, Doc("US dollars per million output tokens")]
    cached_input: Annotated[
        Usd | None, Doc("US dollars per million input tokens read from a cache; default: as `input`")
    ] = None

    @property
    def price(self) -> Price:
        """The price for the engine."""
        return Price(self.input, self.output, self.cached_input)


Unread: TypeAlias = Annotated[Any, AsNode()]
AtLeastOne: TypeAlias = Annotated[int, Between(1)]
Label: TypeAlias = Annotated[Text | None, Verbatim()]
"""Text in which placeholders are not rendered (SPEC section 6)."""
Name: TypeAlias = Annotated[Text | None, Nonempty(), Verbatim()]
"""A label that must not be blank if it is set."""


class AuthoredRepeat(Declared, Struct, frozen=True):
    """Number of samples of a case if it depends on the results."""

    max: Annotated[AtLeastOne, Doc("maximum number of samples")]
    until: Annotated[Until, Doc("stop sampling once it is clear on which side of its threshold a case's pass rate is")]
    alpha: Annotated[
        Annotated[float, Between(0.0001, 0.5)] | None, Doc("maximum error rate of this decision, 0.05")
    ] = None


class AuthoredTrials(Declared, Struct, frozen=True):
    """Number of trials of a case and the rule for its verdict, with AgentV's keys."""

    count: Annotated[AtLeastOne, Doc("number of samples")]
    strategy: Annotated[
        Literal["pass_at_k", "pass_any", "pass_all", "mean", "confidence_interval"],
        Doc("how the samples of a case are combined into its verdict; `pass_at_k` is `pass_any`"),
    ] = "pass_at_k"
    early_exit: Annotated[bool | None, Doc("not applied: all samples run")] = None
    cost_limit_usd: Annotated[
        float | None,
        Between(0.0001),
        Alias(("costLimitUsd",)),
        Doc("when the samples of a case have cost as much, the others are not run, and the case has no verdict"),
    ] = None


class AuthoredJudgeMinimums(Declared, Struct, frozen=True):
    """How well the judges of a suite must agree with people, in its `judge:`."""

    min_tpr: Annotated[
        float | None,
        Between(0.0001, 1),
        Nonempty(),
        Doc("minimum share of what people pass that the judge passes, by labels"),
    ] = None
    min_tnr: Annotated[
        float | None,
        Between(0.0001, 1),
        Nonempty(),
        Doc("minimum share of what people fail that the judge fails, by labels"),
    ] = None


class AuthoredRun(RunKeys, frozen=True, kw_only=True):
    """The `run:` block of a suite."""

    repeat: Annotated[
        AtLeastOne | AuthoredRepeat | AuthoredTrials | None,
        Doc("how many times each case runs, or until when and the maximum"),
    ] = None
    aggregate: Annotated[
        Literal["mean", "pass_any", "pass_all", "majority"] | None,
        Doc("how the samples of a case are combined into its verdict"),
    ] = None
    max_turns: Annotated[AtLeastOne | None, Doc("maximum number of turns of an agent in one trial")] = None
    max_tool_calls: Annotated[AtLeastOne | None, Doc("maximum number of tool calls of an agent in one trial")] = None
    on_limit: Annotated[
        Literal["error", "grade"] | None, Doc("`grade`: a trial whose agent reached a limit is graded as it is")
    ] = None
    retry: Annotated[AuthoredRetry | None, Doc("when to retry a failed call; overridden by the target's own")] = None
    gate: Annotated[
        Gate | None,
        Nonempty(),
        Doc("`corrected`: the pass rate, corrected by labels, decides the run instead of every case"),
    ] = None
    min_pass_rate: Annotated[
        float | None, Between(0.0001, 1), Nonempty(), Doc("with `gate: corrected`: minimum of its lower bound, 0.8")
    ] = None


class AuthoredLimits(Declared, Struct, frozen=True):
    """The `limits:` of a suite or of a case."""

    short: ClassVar[str | None] = None

    budget_usd: Annotated[
        float | None, Between(0.0001), Doc("maximum cost of an agent's model calls in one trial, in US dollars")
    ] = None


class AuthoredExamOf(Declared, Struct, frozen=True):
    """`exam:` of a suite: the prompt whose exam it is."""

    prompt: Annotated[Text, Nonempty(), Verbatim(), Doc("id of the prompt")]
    description: Annotated[Label, Doc("its description, which is part of what is examined")] = None
    directory: Annotated[Text, Nonempty(), Verbatim(), Doc("the prompt's directory; default: that of the file")] = "."


class AuthoredSuite(Declared, Struct, frozen=True):
    """The outermost mapping of an eval file."""

    name: Annotated[Label, Doc("name of this suite in results; default: the file name")] = None
    description: Annotated[Label, Doc("shown, not graded")] = None
    version: Annotated[Label, Doc("version of these cases, kept in the results")] = None
    author: Annotated[Unread, Doc("author")] = None
    license: Annotated[Label, Doc("licence of the cases")] = None
    category: Annotated[Label, Doc("category of the cases, kept in the results")] = None
    tags: Annotated[Unread, Doc("a list or a map of labels")] = None
    metadata: Annotated[JsonObject, Verbatim(), Doc("kept in every row; a case overrides single keys")] = field(
        default=EMPTY
    )
    governance: Annotated[JsonObject, Verbatim(), Doc("risk and compliance facts, kept in every row's metadata")] = (
        field(default=EMPTY)
    )
    requires: Annotated[Unread, Doc("requirements of this suite, for people")] = None
    targets: Annotated[Unread, Doc("the systems under test: names, provider:rest strings or inline targets")] = None
    judge: Annotated[
        Unread, Doc("the target that grades rubrics; `min_tpr` and `min_tnr`: how well it must agree with people")
    ] = None
    prompts: Annotated[Unread, Doc("prompts: texts, messages or files; every case runs with each")] = None
    prompt: Annotated[Unread, Doc("the input of cases without one, filled in with their `vars`: a text or a file")] = (
        None
    )
    input: Annotated[Unread, Doc("messages put before every case's input")] = None
    input_files: Annotated[Unread, Doc("files attached to every case with a string input")] = None
    assert_: Annotated[Unread, Doc("assertions added to every case")] = None
    default_test: Annotated[Unread, Doc("a partial case that every case extends")] = None
    threshold: Annotated[Fraction | None, Doc("minimum score of a case to pass, 0..1")] = None
    template: Annotated[
        Literal["jinja", "nunjucks"], Verbatim(), Doc("the language of placeholders: Jinja's, or promptfoo's Nunjucks")
    ] = "jinja"
    missing_vars: Annotated[
        Literal["error", "empty"], Verbatim(), Doc("`empty`: a variable that a case does not set is empty text")
    ] = "error"
    regex: Annotated[
        Literal["python", "javascript"], Verbatim(), Doc("the syntax of `regex` assertions that name none")
    ] = "python"
    require_all: Annotated[
        bool, Doc("true: every assertion without `weight: 0` is required; without a `threshold` no score decides")
    ] = False
    default_provider: Annotated[Name, Doc("provider of a target or judge that is named by the id of a model alone")] = (
        None
    )
    triggering: Annotated[
        Unread, Doc("queries, and whether a prompt should be loaded for them by its description; the judge answers")
    ] = None
    activation: Annotated[Unread, Doc("queries, and the skill that an agent should load for each")] = None
    exam: Annotated[
        AuthoredExamOf | None, Doc("the prompt whose exam this is; every run is recorded in its `.eval.jsonl`")
    ] = None
    trim: Annotated[
        bool, Doc("false: `equals`, `starts-with` and `ends-with` compare white space, unless they say otherwise")
    ] = True
    show_only: Annotated[bool, Doc("true: cases may check nothing; their answers are shown, and never pass")] = False
    cluster: Annotated[
        Name, Doc("a key of metadata or vars, or a template; cases with equal values depend on each other")
    ] = None
    preprocessors: Annotated[Unread, Doc("commands that turn files in answers into text before rubrics are judged")] = (
        None
    )
    run: Annotated[Unread, Doc("how the suite runs")] = None
    limits: Annotated[AuthoredLimits | None, Doc("what an agent may take in one trial")] = None
    env: Annotated[Unread, Doc("environment for targets and scripts of this suite")] = None
    workspace: Annotated[
        Unread, Doc("directory that an agent works in: a template, repositories, setup, hidden files")
    ] = None
    sandbox: Annotated[
        Unread, Doc("what confines an agent to its workspace: none, bwrap or docker; of a list the first that works")
    ] = None
    variants: Annotated[Unread, Doc("ways to equip the same agent; every case runs with each")] = None
    environment: Annotated[Unread, Doc("AgentV's word for `workspace`")] = None
    extensions: Annotated[Unread, Doc("AgentV's hooks: functions of JavaScript files")] = None
    tools: Annotated[Unread, Doc("scripted MCP tools for agents: server → tool → what it does")] = None
    tests: Annotated[Unread, Doc("the cases: a list, or the path of a file with cases")] = None


class AuthoredCase(Declared, Struct, frozen=True):
    """One entry of `tests:`."""

    id: Annotated[Label, Doc("unique in the suite")] = None
    description: Annotated[Label, Doc("shown, not graded")] = None
    criteria: Annotated[Unread, Doc("description of a correct answer")] = None
    input: Annotated[Unread, Doc("a text, a message, or a list of messages")] = None
    input_files: Annotated[Unread, Doc("files attached to a text input; they replace the suite's")] = None
    expected_output: Annotated[Unread, Doc("the reference answer; not graded by itself")] = None
    vars: Annotated[Unread, Doc("values for {{ name }}")] = None
    expand: Annotated[bool | None, Doc("a list in vars produces one case per item")] = None
    assert_: Annotated[Unread, Doc("this case's assertions")] = None
    rubrics: Annotated[Unread, Doc("shorthand for one llm-rubric over the list")] = None
    skip_defaults: Annotated[
        bool | Literal["assert"],
        Doc("true: ignore the suite's assertions, input and files; `assert`: only its assertions"),
    ] = False
    metadata: Annotated[JsonObject, Verbatim(), Doc("passed to every assertion and judge, and kept in the row")] = (
        field(default=EMPTY)
    )
    governance: Annotated[JsonObject, Verbatim(), Doc("risk and compliance facts, added to the suite's")] = field(
        default=EMPTY
    )
    suite: Annotated[Label, Doc("the suite that the case came from, kept in its metadata")] = None
    options: Annotated[Unread, Doc("`transform`, `judge` and `prompt` of the assertions that set none; `repeat`")] = (
        None
    )
    threshold: Annotated[Fraction | None, Doc("minimum score of this case to pass, 0..1")] = None
    repeat: Annotated[AtLeastOne | None, Doc("how many times this case runs")] = None
    timeout_s: Annotated[Seconds | None, Doc("time limit for one attempt, in seconds")] = None
    max_turns: Annotated[AtLeastOne | None, Doc("maximum number of turns of an agent in one trial")] = None
    max_tool_calls: Annotated[AtLeastOne | None, Doc("maximum number of tool calls of an agent in one trial")] = None
    on_limit: Annotated[
        Literal["error", "grade"] | None, Doc("`grade`: a trial whose agent reached a limit is graded as it is")
    ] = None
    limits: Annotated[AuthoredLimits | None, Doc("what an agent may take in one trial; overrides the suite's")] = None
    tags: Annotated[Unread, Doc("labels to select cases by")] = None
    target: Annotated[Unread, Doc("the target of this case only")] = None
    judge: Annotated[Unread, Doc("the judge of this case only")] = None
    turns: Annotated[Unread, Doc("questions sent one after the other, each with its own assertions")] = None
    mode: Annotated[Literal["conversation"] | None, Verbatim(), Doc("older: `turns` with `aggregation: mean`")] = None
    aggregation: Annotated[
        Literal["mean", "min", "max"] | None,
        Doc("score of a case with turns: of its turns' scores; default: of all assertions"),
    ] = None
    on_turn_failure: Annotated[
        Literal["continue", "stop"] | None, Doc("`stop`: turns after one that fails are not sent and score 0")
    ] = None
    window_size: Annotated[
        AtLeastOne | None,
        Doc("a turn's call has the system messages and the last 2 × `window_size` others; default: all"),
    ] = None
    conversation_id: Annotated[Name, Doc("cases with the same value continue each other, in file order")] = None
    workspace: Annotated[Unread, Doc("directory that an agent works in; overrides the suite's key by key")] = None
    sandbox: Annotated[
        Unread, Doc("what confines an agent to its workspace: none, bwrap or docker; of a list the first that works")
    ] = None
    environment: Annotated[Unread, Doc("AgentV's word for `workspace`")] = None
    solution: Annotated[
        Unread, Doc("a patch, files or commands that make the case pass, for `agentv check --oracle`")
    ] = None
    tools: Annotated[Unread, Doc("scripted MCP tools for agents; overrides the suite's tool by tool")] = None
    user: Annotated[Unread, Doc("a simulated user that talks with the target; text is its goal")] = None
    depends_on: Annotated[Unread, Doc("the id of a case that must pass first, or a list of ids")] = None
    on_dependency_failure: Annotated[
        Literal["skip", "fail", "run"] | None,
        Doc(
            "if a case that it depends on does not pass: `skip` (default): not run; `fail`: errored; `run`: run anyway"
        ),
    ] = None


class AuthoredTurn(Declared, Struct, frozen=True):
    """One entry of `turns:`."""

    input: Annotated[Unread, Doc("a text, a message, or a list of messages")] = None
    criteria: Annotated[Unread, Doc("description of a correct answer to this turn")] = None
    expected_output: Annotated[Unread, Doc("the reference answer of this turn")] = None
    assert_: Annotated[Unread, Doc("assertions that grade this turn's answer")] = None


class AuthoredDefaultTest(Declared, Struct, frozen=True):
    """`default_test:` of a suite."""

    vars: Annotated[Unread, Doc("values for {{ name }}; a case overrides single keys")] = None
    expand: Annotated[bool | None, Verbatim(), Doc("a list in vars produces one case per item")] = None
    metadata: Annotated[Unread, Doc("kept in every row; a case overrides single keys")] = None
    assert_: Annotated[Unread, Doc("assertions added to every case")] = None
    threshold: Annotated[Fraction | None, Verbatim(), Doc("minimum score of every case to pass")] = None
    options: Annotated[Unread, Doc("options of every case; a case overrides single keys")] = None


class AuthoredExam(Declared, Struct, frozen=True):
    """The outermost mapping of an exam."""

    defaults: Annotated[Unread, Doc("settings for every case that does not override them")] = None
    triggering: Annotated[Unread, Doc("queries, and which of them should load the prompt based on its description")] = (
        None
    )
    cases: Annotated[Unread, Doc("the cases of the exam; the prompt must pass all of them")] = None


class AuthoredExamDefaults(Declared, Struct, frozen=True):
    """`defaults:` of an exam."""

    model: Annotated[
        Unread, Alias(("target",)), Doc("the model under test: a target name, provider:model, or an Anthropic model id")
    ] = None
    judge: Annotated[Unread, Doc("the model that grades rubrics, or a mapping with the model and its settings")] = None
    timeout_s: Annotated[Seconds | None, Doc("time limit for one attempt, in seconds")] = None


class AuthoredExamJudge(Declared, Struct, frozen=True):
    """`judge:` of a case, or of all cases."""

    model: Annotated[Unread, Alias(("target",)), Doc("the model that grades; same forms as the exam's model")] = None
    pass_threshold: Annotated[Unread, Doc("minimum points to pass; 4 of 1-5")] = None
    scale: Annotated[Unread, Doc("lowest and highest points; default: 1-5")] = None
    votes: Annotated[Unread, Doc("number of verdicts to request, odd; the median counts")] = None
    temperature: Annotated[Unread, Doc("sampling temperature of the judge")] = None


class AuthoredExamCase(Declared, Struct, frozen=True):
    """One entry of `cases:`."""

    name: Annotated[Unread, Doc("unique in the exam; the log lists failed cases by name")] = None
    description: Annotated[Label, Doc("shown, not graded")] = None
    inputs: Annotated[Unread, Doc("values for {{ name }} in the prompt; they override those of inputs_from")] = None
    inputs_from: Annotated[
        Unread, Doc("a directory with inputs.yml, relative to the repository root, else to the prompt's directory")
    ] = None
    assert_: Annotated[Unread, Alias(("assertions",)), Doc("assertions; the answer must pass all of them")] = None
    rubric: Annotated[Unread, Doc("what a judge grades with points; the answer must reach the pass_threshold")] = None
    expected_output: Annotated[Unread, Doc("the reference answer, for assertions that compare with one")] = None
    judge: Annotated[Unread, Doc("the model that grades this case, or a mapping with the model and its settings")] = (
        None
    )
    model: Annotated[Unread, Alias(("target",)), Doc("the model under test for this case")] = None
    timeout_s: Annotated[Seconds | None, Doc("time limit for one attempt, in seconds")] = None
    repeat: Annotated[AtLeastOne | None, Doc("how many times this case runs; every answer must pass")] = None
    tags: Annotated[Unread, Doc("labels to select cases by")] = None
    metadata: Annotated[JsonObject, Verbatim(), Doc("passed to every assertion and judge, and kept in the row")] = (
        field(default=EMPTY)
    )


class AuthoredTemplate(Declared, Struct, frozen=True):
    """A file of assertions to include."""

    assert_: Annotated[Unread, Doc("the assertions that replace the include")] = None
    name: Annotated[Unread, Doc("for people")] = None
    description: Annotated[Unread, Doc("for people")] = None


class AuthoredPrompt(Declared, Struct, frozen=True):
    """An entry of `prompts:` that is an object."""

    id: Annotated[Label, Doc("unique in the suite; shown in rows")] = None
    label: Annotated[Label, Doc("its name if it has no id; otherwise for people")] = None
    prompt: Annotated[Unread, Alias(("raw", "messages")), Doc("a text, a list of messages, or a file with one")] = None
    file: Annotated[Label, Alias(("path",)), Doc("the file that contains the prompt")] = None
    sections: Annotated[
        bool, Doc("true: the tags `<system>`, `<user>` and `<assistant>` in the file begin messages")
    ] = False


class AuthoredOptions(Declared, Struct, frozen=True):
    """The `options:` of a case or of `default_test`."""

    judge: Annotated[Unread, Doc("the judge of the case")] = None
    prompt: Annotated[PromptCode | Document | None, Doc("the judge prompt of rubrics without one of their own")] = None
    transform: Annotated[
        Transform | None, Doc("reshapes the answer before the assertions; their own `transform` follows it")
    ] = None
    repeat: Annotated[AtLeastOne | None, Doc("how many times the case runs")] = None


class AuthoredTarget(Declared, Struct, frozen=True):
    """Keys of every target, independent of its provider."""

    name: Annotated[Text | None, Doc("name of the target in suites")] = None
    provider: Annotated[Label, Doc("what kind of system it is")] = None
    judge: Annotated[Text | None, Doc("the target that grades this target's answers")] = None
    env: Annotated[Mapping[str, Text], Doc("environment of this target's own processes")] = field(default_factory=dict)
    workers: Annotated[AtLeastOne | None, Doc("maximum number of concurrent calls")] = None
    timeout_s: Annotated[Seconds | None, Doc("time limit for one attempt, in seconds")] = None
    retry: Annotated[AuthoredRetry | None, Doc("when to retry a failed call")] = None
    rate: Annotated[AuthoredRate | None, Doc("rate limit")] = None
    price: Annotated[AuthoredPrice | None, Doc("price of its tokens; overrides the price list")] = None
    allow_empty: Annotated[bool, Doc("true: an empty answer counts as an answer")] = False
    thoughts: Annotated[
        Literal["strip", "keep"],
        Doc("`strip`: a `<think>` block that begins the answer is not graded; `keep`: it is part of the answer"),
    ] = "strip"
    fingerprint: Annotated[
        FileGlobs | None, Doc("further files that it depends on, besides those that its settings name")
    ] = None


class AuthoredSettings(Declared, Struct, frozen=True):
    """The keys that every assertion accepts (SPEC section 7.1)."""

    name: Annotated[Label, Doc("shown, and the key of the score"), Alias(("metric",))] = None
    weight: Annotated[float, Between(0), Doc("weight of the score; 0: reported, not counted")] = 1.0
    required: Annotated[bool | Fraction, Doc("true: the grade must pass; a number: minimum score")] = False
    min_score: Annotated[Fraction | None, Doc("minimum score of the grade to pass")] = None
    negate: Annotated[bool, Doc("invert the grade and its checks")] = False
    timeout_s: Annotated[Seconds | None, Doc("time limit for code or a judge, in seconds")] = None
    transform: Annotated[Transform | None, Doc("reshapes the output for this assertion")] = None
