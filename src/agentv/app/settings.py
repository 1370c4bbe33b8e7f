"""Settings of `agentv eval` as one frozen object; flags override environment variables (SPEC sections 2 and 12).

Each setting is a field. Its name is the keyword of `evaluate()`; its annotation declares the flag, the environment
variable and the bounds. Each group of settings derives from the one before, and `EvalSettings` from the last. `check`
raises if settings of a group contradict each other.
"""

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import field

from agentv.errors import UsageError
from agentv.model.suite.suite import Case, TargetSpec, Until
from agentv.model.suite.workspace import KeepWorkspaces, SandboxName
from agentv.model.values.values import Json
from agentv.registry.extensions import EXECUTORS, lacking
from agentv.registry.fields import Between, options_of
from agentv.registry.settings import (
    EARLIER,
    MOST_USED,
    STATISTICS,
    Flag,
    Resumed,
    RunKeys,
    Setting,
    Variable,
    setting_of,
)

if TYPE_CHECKING:
    from agentv.engine.plan import FailedTrials

LOCAL = "local"
"""The built-in executor, which runs trials on this machine."""

PositiveInt = Annotated[int, Between(1)]


class Subject(RunKeys, frozen=True, kw_only=True):
    """What is evaluated.

    Attributes:
        paths: eval files, or directories that contain them.
        documents: content of eval files, given as plain data.
        given_target, given_judge: `targets` and `judge` as Python objects; they override all others.
        asks: whether calls will be made; if not, API keys may be missing.
        first_messages: simulated users write only their first message, without a model.
        independent: run cases whether or not their dependencies ran or passed.
        process_env: the environment of the process.
    """

    section: ClassVar[str] = MOST_USED

    paths: tuple[str, ...] = ()
    targets: Annotated[
        tuple[str, ...], Variable("AGENTV_TARGET"), Flag("-t --target", "Target to evaluate.", "TARGET")
    ] = ()
    judge: Annotated[str | None, Variable("AGENTV_JUDGE"), Flag("--judge", "Model that grades rubrics.", "TARGET")] = (
        None
    )
    documents: tuple[Mapping[str, Json], ...] = ()
    given_target: TargetSpec | Mapping[str, Json] | None = None
    given_judge: TargetSpec | Mapping[str, Json] | None = None
    asks: bool = True
    first_messages: bool = False
    independent: bool = False
    process_env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def __repr__(self) -> str:
        """Omit the environment, whose values may be secrets."""
        return f"{type(self).__name__}({', '.join(self.paths)})"

    @property
    def requested_targets(self) -> tuple[str, ...]:
        """Targets from the command line, else the one from the environment."""
        named = self._in_environment("targets")
        return self.targets or ((named,) if named else ())

    @property
    def requested_judge(self) -> str | None:
        """Judge from the command line, else from the environment."""
        return self.judge or self._in_environment("judge") or None

    def _in_environment(self, name: str) -> str | None:
        return self.process_env.get(environment_variables()[name])


class Output(Subject, frozen=True, kw_only=True):
    """Where results go.

    Attributes:
        out: the run directory; None: a new one below `.agentv/results`.
        watched: file to write the run directory to, for `--watch`, which runs the command after every save.
    """

    section: ClassVar[str] = MOST_USED

    out: str | None = None
    exports: Annotated[
        tuple[str, ...],
        Flag(
            "-o --out",
            "Results directory, or a report FILE: .jsonl, .json, .csv, .xml (JUnit), .html or .md. Repeatable.",
            "DIR|FILE",
            parameter="outs",
        ),
    ] = ()
    watched: str | None = None


class Selection(Output, frozen=True, kw_only=True):
    """Which cases run.

    Attributes:
        failed: the trials selected by `last_failed`, once they are known.
        variants: names of the variants to run; empty: all.
    """

    section: ClassVar[str] = "Cases"

    filter: Annotated[
        str | tuple[str, ...] | None,
        Resumed(),
        Flag("--filter", "Run only cases whose id matches. Repeatable.", "GLOB", MOST_USED, parameter="filters"),
    ] = None
    last_failed: Annotated[
        bool, Flag("--last-failed --lf", "Run only the cases that did not pass when they last ran.", None, MOST_USED)
    ] = False
    tags: Annotated[tuple[str, ...], Resumed(), Flag("--tag", "Run only cases with this tag. Repeatable.", "TAG")] = ()
    exclude_tags: Annotated[
        tuple[str, ...], Resumed(), Flag("--exclude-tag", "Skip cases with this tag. Repeatable.", "TAG")
    ] = ()
    limit: Annotated[
        PositiveInt | None, Resumed(), Flag("--limit", "Run at most N cases of each suite.", "N", MOST_USED)
    ] = None
    sample: Annotated[
        PositiveInt | None, Resumed(), Flag("--sample", "Run N cases, drawn at random from all suites.", "N")
    ] = None
    prompts: Annotated[
        tuple[str, ...], Resumed(), Flag("--prompt", "Run only this prompt, by its id or label. Repeatable.", "NAME")
    ] = ()
    seed: Annotated[int | None, Resumed(), Flag("--seed", "Random seed for --sample and --shuffle.", "S")] = None
    shuffle: Annotated[
        bool, Resumed(), Flag("--shuffle", "Run the trials in a random order, which a resume repeats.")
    ] = False
    shard: Annotated[
        str | None,
        Resumed(),
        Flag("--shard", "Run the I-th of N parts of the cases; join them with 'results merge'.", "I/N"),
    ] = None
    variants: Annotated[tuple[str, ...], Resumed()] = ()
    failed: "FailedTrials | None" = None

    @property
    def filters(self) -> tuple[str, ...]:
        """Patterns of `filter`."""
        if self.filter is None:
            return ()
        return (self.filter,) if isinstance(self.filter, str) else self.filter

    @property
    def narrows(self) -> bool:
        """Whether `selects` may exclude a case."""
        return self.filter is not None or bool(self.tags or self.exclude_tags)

    def selects(self, case: Case) -> bool:
        """Whether a case is selected. Cases that one entry expands to can be selected by that entry's id."""
        if self.filter is not None and not any(
            _matches(one, pattern) for one in _names_of(case) for pattern in self.filters
        ):
            return False
        if self.tags and not set(self.tags) & set(case.tags):
            return False
        return not set(self.exclude_tags) & set(case.tags)

    def unmatched(self, cases: Iterable[Case]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the patterns and tags that match no case, if several were given: they are probably misspelt."""
        patterns = set(self.filters if len(self.filters) > 1 else ())
        tags = set(self.tags if len(self.tags) > 1 else ())
        for case in cases if patterns or tags else ():
            patterns -= {one for one in patterns if any(_matches(name, one) for name in _names_of(case))}
            tags -= set(case.tags)
            if not patterns and not tags:
                break
        return tuple(sorted(patterns)), tuple(sorted(tags))

    def check(self) -> None:
        """Raise for empty tags and patterns, and for shards that would each draw different cases."""
        if self.filter is not None and not self.filters:
            raise UsageError("filter has no pattern, so it selects no case", "give a pattern, or omit filter")
        for flag, tags in {"--tag": self.tags, "--exclude-tag": self.exclude_tags}.items():
            if not all(tag.strip() for tag in tags):
                raise UsageError(f"{flag} has an empty tag", "give a tag, or omit the flag")
        if self.shard is not None and self.sample is not None and self.seed is None:
            what = "--shard with --sample requires --seed, so that all shards draw the same cases"
            raise UsageError(what, "add --seed S")


def parse_shard(text: str) -> tuple[int, int]:
    """Parse a shard `I/N` into its two numbers.

    Raises:
        UsageError: the text does not have this form.
    """
    index, slash, of = text.partition("/")
    if not slash or not (index.isdecimal() and of.isdecimal()) or not 1 <= int(index) <= int(of):
        raise UsageError(f"--shard takes I/N, with I from 1 to N, found '{text}'", "for example: --shard 1/4")
    return int(index), int(of)


def _names_of(case: Case) -> tuple[str, ...]:
    return (case.id, case.id.removesuffix(case.id_suffix)) if case.id_suffix else (case.id,)


def _matches(identity: str, pattern: str) -> bool:
    return identity == pattern or fnmatchcase(identity, pattern)  # an id such as `a[locale=de]` is also a pattern


class Inputs(Selection, frozen=True, kw_only=True):
    """Data that cases are built from."""

    section: ClassVar[str] = "Input"

    tests_from: Annotated[
        str | None,
        Flag(
            "--tests-from",
            "Run the cases of a data file, a directory of transcripts or hf://… instead of those of the eval files.",
            "PATH",
        ),
    ] = None
    variables: Annotated[
        Mapping[str, Json], Flag("--var", "Set a variable; overrides the value in every case. Repeatable.", "K=V")
    ] = field(default_factory=dict)
    env_file: Annotated[
        str | None, Flag("--env-file", "Read this file instead of the project's .env files.", file=True)
    ] = None
    allow_outside: Annotated[bool, Flag("--allow-outside", "Allow files outside the repository.")] = False


class Sampling(Inputs, frozen=True, kw_only=True):
    """How often cases run, and how their outcome is decided."""

    section: ClassVar[str] = STATISTICS

    repeat: Annotated[
        PositiveInt | None, Resumed(), Flag("--repeat", "Number of samples for each case.", "N", MOST_USED)
    ] = None
    threshold: Annotated[
        float | None, Between(0, 1), Resumed(), Flag("--threshold", "Minimum score for every case to pass.", "X")
    ] = None
    until: Annotated[
        Until | None,
        Resumed(),
        Flag("--until", "Stop sampling each case, or with --against drawing cases, once the outcome is decided."),
    ] = None
    alpha: Annotated[
        float | None,
        Between(0.0001, 0.5),
        Resumed(),
        Flag("--alpha", "Error rate for --until decided (default 0.05).", "X"),
    ] = None
    against: Annotated[
        str | None,
        Resumed(),
        Flag("--against", "Draw cases until the comparison with RUN is decided. Requires --until decided.", "RUN"),
    ] = None
    margin: Annotated[
        float | None,
        Between(0.0001, 0.9999),
        Resumed(),
        Flag("--margin", "Largest loss of the pass rate that --against ignores.", "D"),
    ] = None

    def check(self) -> None:
        """Raise if the options of a comparison are incomplete."""
        if self.against is None and self.margin is not None:
            raise UsageError("--margin requires --against and --until decided", "add --against RUN --until decided")
        if self.against is not None and self.until is None:
            hint = "add --until decided; to compare two finished runs: agentv compare BASE CANDIDATE"
            raise UsageError("--against requires --until decided", hint)


class Reuse(Sampling, frozen=True, kw_only=True):
    """Reuse of an earlier run or a cassette."""

    section: ClassVar[str] = EARLIER

    resume: Annotated[str | None, Flag("--resume", "Resume a run (default: the last).", "RUN", bare="last")] = None
    rerun: Annotated[
        Literal["failed", "errored"] | None, Flag("--rerun", "Run the failed or errored trials of the run again.")
    ] = None
    regrade: Annotated[
        str | None,
        Flag("--regrade", "Grade the stored answers of a run again without calling its targets.", "RUN", bare="last"),
    ] = None
    record: Annotated[
        str | None, Flag("--record", "Record answers of targets, judges and embedders to a cassette.", "FILE")
    ] = None
    replay: Annotated[str | None, Flag("--replay", "Replay answers from a cassette; make no calls.", "FILE")] = None
    replay_mode: Annotated[
        Literal["strict", "new"],
        Flag("--replay-mode", "If the cassette lacks an answer: fail (strict), or call and record it (new)."),
    ] = "strict"

    @property
    def resume_run(self) -> str | None:
        """The run to resume: that of `resume`, else the last run if `rerun` is set."""
        return self.resume or ("last" if self.rerun is not None else None)

    def check(self) -> None:
        """Raise for conflicting sources of earlier answers."""
        for flag, file in {"--record": self.record, "--replay": self.replay}.items():
            if file is not None and not file.strip():
                raise UsageError(f"{flag} has an empty name", "give a cassette file, or omit the flag")
        if self.regrade is not None and self.rerun is not None:
            raise UsageError("--regrade and --rerun conflict: one calls no target, the other does", "use one of them")
        if self.record is not None and self.replay is not None:
            hint = "to add missing answers to a cassette: --replay FILE --replay-mode new"
            raise UsageError("--record and --replay conflict", hint)
        if self.record is not None and self.resume_run is not None:
            flag = "--resume" if self.resume is not None else "--rerun"
            hint = "record again; with --cache on all runs, no call is paid for twice"
            raise UsageError(f"--record requires a complete run, but {flag} runs a part of one", hint)
        if self.regrade is not None and (self.record or self.replay):
            raise UsageError("--regrade uses the stored answers of a run, so it cannot record or replay a cassette")
        if self.replay_mode == "new" and self.replay is None:
            raise UsageError("--replay-mode requires --replay", "add --replay FILE")


class Execution(Reuse, frozen=True, kw_only=True):
    """How trials run.

    Attributes:
        sandbox, keep_workspaces: override the values in eval files.
        workspace_path: an existing directory that all agents work in, one at a time.
    """

    section: ClassVar[str] = "Checks and debugging"

    fail_fast: Annotated[bool, Flag("--fail-fast", "Stop after the first failed or errored trial.", None, "Limits")] = (
        False
    )
    executor: Annotated[str, Flag("--executor", "Run trials on this machine or on a Ray cluster.", table=EXECUTORS)] = (
        LOCAL
    )
    debug: Annotated[
        bool,
        Flag(
            "--debug",
            "Run one trial at a time, without time limits, with Python code on the terminal: breakpoint() works.",
        ),
    ] = False
    sandbox: SandboxName | None = None
    keep_workspaces: KeepWorkspaces | None = None
    workspace_path: str | None = None

    def check(self) -> None:
        """Raise for an unknown executor."""
        if self.executor == LOCAL:
            return
        from agentv.user_code.plugins import added  # imported here, as it searches the installed packages

        known = (LOCAL, *added(EXECUTORS))
        if self.executor not in known:
            needs = lacking(EXECUTORS, self.executor) or f"executor must be one of {', '.join(known)}"
            raise UsageError(f"{needs}, found {self.executor!r}")


class Allowances(Execution, frozen=True, kw_only=True):
    """Leniency about warnings and unchecked cases."""

    section: ClassVar[str] = "Checks and debugging"

    strict: Annotated[bool, Flag("--strict", "Treat warnings as errors.")] = False
    allow_unchecked: Annotated[
        bool, Flag("--allow-unchecked", "Exit with 0 even if cases were shown and not checked.")
    ] = False


GROUPS = (Subject, Output, Selection, Inputs, Sampling, Reuse, RunKeys, Allowances, Execution)
"""Groups in the order in which `agentv eval --help` lists their flags."""


class EvalSettings(Allowances, frozen=True, kw_only=True):
    """Options of `agentv eval`; None means that the eval files decide."""

    def check(self) -> None:
        """Raise for numbers out of bounds and settings that contradict each other.

        Raises:
            UsageError: with a message that says what to change.
        """
        for name, setting in declared_settings().items():
            setting.check(name, getattr(self, name))
        if self.debug and (self.executor != LOCAL or self.workers is not None):
            other = "workers" if self.executor == LOCAL else f"executor {self.executor}"
            raise UsageError(f"--debug runs one trial at a time on this machine, so omit --{other}")
        for group in (Execution, Selection, Reuse, Sampling):
            group.check(self)
        if self.cache and (self.regrade or self.replay or self.rerun):
            other = "--regrade" if self.regrade else "--replay" if self.replay else "--rerun"
            raise UsageError(f"--cache and {other} conflict: both set where answers come from", "use one of them")
        if self.cluster is not None and not self.cluster.strip():
            raise UsageError("--cluster has an empty key", "give a key of metadata or vars, or omit the flag")
        if self.seed is not None and not (self.sample or self.shuffle or self.against):
            raise UsageError("--seed requires --sample or --shuffle", "add --sample N or --shuffle")
        if self.shuffle and self.against is not None:
            raise UsageError("--shuffle conflicts with --against, which draws cases at random", "omit --shuffle")
        self._check_last_failed()
        self._check_against()

    def _check_last_failed(self) -> None:
        """Raise for options that conflict with `--last-failed`; machines that run shards have different last runs."""
        for name in ("resume", "rerun", "sample", "against", "shard") if self.last_failed else ():
            if getattr(self, name) is not None:
                raise UsageError(f"--last-failed conflicts with --{name}", "use one of them")

    def _check_against(self) -> None:
        """Raise for options that conflict with `--against`, which must draw cases regardless of earlier results."""
        if self.against is None:
            return
        if self.rerun == "failed":
            what = "--rerun=failed runs only failed cases again, but --against draws cases at random"
            raise UsageError(what, "start a new run")
        for name in ("regrade", "limit", "shard"):
            if getattr(self, name) is not None:
                hint = "use --sample N" if name == "limit" else "compare the runs with agentv compare"
                what = f"--{name} conflicts with --against, which draws cases at random and requires new answers"
                raise UsageError(what, hint)


@cache
def declared_settings() -> Mapping[str, Setting]:
    """Return the fields of `EvalSettings` by name, group by group."""
    defaults = options_of(EvalSettings)
    return {
        name: setting_of(hint, defaults[name], group.section)
        for group in GROUPS
        for name, hint in group.__annotations__.items()
        if name in defaults
    }


@cache
def resumed_settings() -> Mapping[str, Setting]:
    """Return the settings that a resume takes from the run."""
    return {name: setting for name, setting in declared_settings().items() if setting.marked(Resumed) is not None}


@cache
def environment_variables() -> Mapping[str, str]:
    """Return the environment variables of settings, by setting name."""
    declared = ((name, setting.marked(Variable)) for name, setting in declared_settings().items())
    return {name: variable.name for name, variable in declared if variable is not None}


def flag_names(*names: str) -> dict[str, str]:
    """Return the flags of settings as spelled in messages, by setting name."""
    return {name: declared_settings()[name].flag for name in names}
