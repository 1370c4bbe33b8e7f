"""Settings of a command: flags override environment variables; one frozen object (SPEC sections 2 and 12)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agentv.errors import UsageError
from agentv.model.suite.suite import Case, TargetSpec, Until
from agentv.model.suite.workspace import KeepWorkspaces, SandboxName
from agentv.model.values.values import Json
from agentv.registry.extensions import EXECUTORS, lacking

if TYPE_CHECKING:
    from agentv.engine.failed_trials import FailedTrials

LOCAL = "local"
"""The executor that is always there: trials run on this machine."""
"""Where trials can run."""


@dataclass(frozen=True, slots=True)
class EvalSettings:
    """Options of `agentv eval`. None: the files decide.

    Attributes:
        targets, judge: names or `provider:rest`; they override the files and the environment.
        documents: content of eval files, given as plain data.
        given_target, given_judge: as `targets` and `judge`, as Python objects; they override all others.
        tests_from: a path or a dataset whose cases replace those of every suite.
        filter, tags, exclude_tags: select cases; of several filters one must match.
        last_failed: run only the cases that did not pass when they last ran.
        failed: these cases, once they are known.
        watched: file that gets the directory of the run, for the command that runs it again after every save.
        out: the run directory; None: a new one below `.agentv/results`.
        exports: files to export the run to; the suffix selects the format.
        sample: number of cases to draw at random.
        seed: of the sample, and of the order of a shuffled run; without one a seed is chosen, and recorded.
        limit: maximum number of cases of each suite.
        prompts: ids or labels of the prompts to run; empty: all.
        shuffle: run the trials in a random order.
        shard: `I/N`, the I-th of N parts of the selected cases.
        resume: a run's id, directory or `last`; None: a new run.
        rerun: repeat the trials of that run with this outcome.
        regrade: grade the answers of this run without calling a target.
        record: the cassette to record.
        record_code: also record grades of user code, so that a replay runs none of it.
        replay, replay_mode: the cassette to take answers from; `new`: make and record missing calls.
        cache: reuse answers of earlier runs, and store those of this one.
        executor: run trials in this process, or on a Ray cluster.
        debug: run one trial at a time, with Python code connected to the terminal, and without time limits for it.
        budget_usd, budget_tokens: budget of the run, including earlier processes of a resumed one.
        until, alpha: `decided`: stop sampling a case once its pass rate is decided, with error rate alpha.
        against, margin: end the run once its comparison with this run is decided; a loss up to the margin does not
            matter.
        cluster: key of `metadata` or `vars`, or a template, whose equal values make cases dependent.
        fail_fast: stop after the first trial that fails or errors.
        allow_unchecked: cases that check nothing do not change the exit status.
        allow_outside: also read files outside the repository.
        trust_data: allow rows of data files to name code and read the environment.
        variants: names of the variants to run; empty: all.
        sandbox, keep_workspaces: override the files.
        workspace_path: an existing directory that every agent works in, one after the other.
        asks: False: no call will be made, so keys may be missing.
        process_env: the environment of the process.
    """

    paths: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    judge: str | None = None
    documents: tuple[Mapping[str, Json], ...] = ()
    given_target: TargetSpec | Mapping[str, Json] | None = None
    given_judge: TargetSpec | Mapping[str, Json] | None = None
    workers: int | None = None
    repeat: int | None = None
    until: Until | None = None
    alpha: float | None = None
    against: str | None = None
    margin: float | None = None
    threshold: float | None = None
    cluster: str | None = None
    timeout_s: float | None = None
    max_errors: int | None = None
    budget_usd: float | None = None
    budget_tokens: int | None = None
    tests_from: str | None = None
    filter: str | tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    limit: int | None = None
    sample: int | None = None
    seed: int | None = None
    prompts: tuple[str, ...] = ()
    shuffle: bool = False
    shard: str | None = None
    variables: Mapping[str, Json] = field(default_factory=dict)
    env_file: str | None = None
    out: str | None = None
    exports: tuple[str, ...] = ()
    resume: str | None = None
    rerun: Literal["failed", "errored"] | None = None
    regrade: str | None = None
    record: str | None = None
    record_code: bool = False
    replay: str | None = None
    replay_mode: Literal["strict", "new"] = "strict"
    cache: bool | None = None
    executor: str = LOCAL
    debug: bool = False
    fail_fast: bool = False
    strict: bool = False
    allow_unchecked: bool = False
    allow_outside: bool = False
    trust_data: bool = False
    last_failed: bool = False
    failed: FailedTrials | None = None
    watched: str | None = None
    variants: tuple[str, ...] = ()
    sandbox: SandboxName | None = None
    keep_workspaces: KeepWorkspaces | None = None
    workspace_path: str | None = None
    asks: bool = True
    process_env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)

    @property
    def resume_run(self) -> str | None:
        """The run to go on with: that of `resume`, else for a rerun the last one."""
        return self.resume or ("last" if self.rerun is not None else None)

    @property
    def asked_targets(self) -> tuple[str, ...]:
        """The targets of the command line, else AGENTV_TARGET."""
        named = self.process_env.get("AGENTV_TARGET")
        return self.targets or ((named,) if named else ())

    @property
    def asked_judge(self) -> str | None:
        """The judge of the command line, else AGENTV_JUDGE."""
        return self.judge or self.process_env.get("AGENTV_JUDGE") or None

    @property
    def filters(self) -> tuple[str, ...]:
        """The patterns of `filter`."""
        if self.filter is None:
            return ()
        return (self.filter,) if isinstance(self.filter, str) else self.filter

    def chooses(self, case: Case) -> bool:
        """Whether a case is selected. Cases that one entry expands to can be selected by that entry's id."""
        if self.filter is not None and not any(
            _matches(one, pattern) for one in _names_of(case) for pattern in self.filters
        ):
            return False
        if self.tags and not set(self.tags) & set(case.tags):
            return False
        return not set(self.exclude_tags) & set(case.tags)


def _names_of(case: Case) -> tuple[str, ...]:
    return (case.id, case.id.removesuffix(case.id_suffix)) if case.id_suffix else (case.id,)


def _matches(identity: str, pattern: str) -> bool:
    return identity == pattern or fnmatchcase(identity, pattern)  # `a[locale=de]` is an id, and a pattern too


def check_settings(settings: EvalSettings) -> None:
    """Refuse numbers that mean nothing; the command line does so itself, a call of the SDK comes here first.

    Raises:
        UsageError: one is out of its bounds, or not finite.
    """
    bounds = {"workers": 1, "repeat": 1, "max_errors": 1, "limit": 1, "sample": 1, "budget_tokens": 1}
    for name, least in bounds.items():
        value = getattr(settings, name)
        if value is not None and (not isinstance(value, int) or value < least):
            raise UsageError(f"{name} must be a whole number of at least {least}, found {value!r}")
    if settings.executor != LOCAL:
        _check_executor(settings.executor)
    if settings.debug and (settings.executor != LOCAL or settings.workers is not None):
        other = "workers" if settings.executor == LOCAL else f"executor {settings.executor}"
        raise UsageError(f"--debug runs one trial at a time on this machine, so omit --{other}")
    for flag, tags in {"--tag": settings.tags, "--exclude-tag": settings.exclude_tags}.items():
        if not all(tag.strip() for tag in tags):
            raise UsageError(f"{flag} has an empty tag", "give a tag, or omit the flag")
    _check_reuse(settings)
    _check_last_failed(settings)
    _check_seed(settings)
    _check_ends(settings)
    if settings.cluster is not None and not settings.cluster.strip():
        raise UsageError("--cluster has an empty key", "give a key of metadata or vars, or omit the flag")
    threshold, timeout_s = settings.threshold, settings.timeout_s
    if threshold is not None and not 0 <= threshold <= 1:
        raise UsageError(f"threshold must be between 0 and 1, found {threshold!r}")
    if timeout_s is not None and not 0 < timeout_s < math.inf:
        raise UsageError(f"timeout_s must be a number of seconds above 0, found {timeout_s!r}")


def _check_executor(name: str) -> None:
    from agentv.user_code.plugin_tables import added  # which searches the installed packages

    known = (LOCAL, *added(EXECUTORS))
    if name not in known:
        needs = lacking(EXECUTORS, name) or f"executor must be one of {', '.join(known)}"
        raise UsageError(f"{needs}, found {name!r}")


def _check_last_failed(settings: EvalSettings) -> None:
    """Refuse options that choose cases in another way, or another run."""
    if not settings.last_failed:
        return
    other = {
        "--resume": settings.resume,
        "--rerun": settings.rerun,
        "--sample": settings.sample,
        "--against": settings.against,
    }
    for flag, value in other.items():
        if value is not None:
            raise UsageError(f"--last-failed conflicts with {flag}", "use one of them")


def _check_seed(settings: EvalSettings) -> None:
    """Refuse a seed that draws nothing."""
    if settings.seed is not None and not (settings.sample or settings.shuffle or settings.against):
        raise UsageError("--seed requires --sample or --shuffle", "add --sample N or --shuffle")
    if settings.shard is not None and settings.sample is not None and settings.seed is None:
        raise UsageError(
            "--shard with --sample requires --seed, so that all shards draw the same cases", "add --seed S"
        )
    if settings.shuffle and settings.against is not None:
        raise UsageError("--shuffle conflicts with --against, which draws cases at random", "omit --shuffle")
    if settings.seed is not None and not isinstance(settings.seed, int):
        raise UsageError(f"seed must be a whole number, found {settings.seed!r}")


def _check_ends(settings: EvalSettings) -> None:
    """Refuse ends of a run, or of a case's samples, that are none."""
    if settings.until not in (None, "decided"):
        raise UsageError(f"until must be 'decided', found {settings.until!r}")
    if settings.alpha is not None and not 0 < settings.alpha <= 0.5:
        raise UsageError(f"alpha must be above 0 and at most 0.5, found {settings.alpha!r}")
    _check_against(settings)
    if settings.budget_usd is not None and not 0 < settings.budget_usd < math.inf:
        raise UsageError(f"budget_usd must be a number of US dollars above 0, found {settings.budget_usd!r}")


def _check_against(settings: EvalSettings) -> None:
    """Refuse a comparison with an earlier run that cannot be made.

    Raises:
        UsageError: the run is not named, does not end when decided, or would draw cases by what they came to.
    """
    if settings.against is None:
        if settings.margin is not None:
            raise UsageError("--margin requires --against and --until decided", "add --against RUN --until decided")
        return
    if settings.margin is not None and not 0 < settings.margin < 1:
        raise UsageError(f"margin must be above 0 and below 1, found {settings.margin!r}")
    if settings.until is None:
        hint = "add --until decided; to compare two finished runs: agentv compare BASE CANDIDATE"
        raise UsageError("--against requires --until decided", hint)
    if settings.rerun == "failed":
        what = "--rerun=failed runs only failed cases again, but --against draws cases at random"
        raise UsageError(what, "start a new run")
    if settings.regrade is not None or settings.limit is not None:
        flag = "--regrade" if settings.regrade is not None else "--limit"
        hint = "use --sample N" if settings.limit is not None else "compare the runs with agentv compare"
        raise UsageError(f"{flag} conflicts with --against, which draws cases at random and requires new answers", hint)


def _check_reuse(settings: EvalSettings) -> None:
    """Refuse ways to take up earlier answers that contradict each other."""
    for flag, file in {"--record": settings.record, "--replay": settings.replay}.items():
        if file is not None and not file.strip():
            raise UsageError(f"{flag} has an empty name", "give a cassette file, or omit the flag")
    if settings.regrade is not None and settings.rerun is not None:
        raise UsageError("--regrade and --rerun conflict: one calls no target, the other does", "use one of them")
    if settings.record is not None and settings.replay is not None:
        hint = "to add missing answers to a cassette: --replay FILE --replay-mode new"
        raise UsageError("--record and --replay conflict", hint)
    if settings.record is not None and settings.resume_run is not None:
        flag = "--resume" if settings.resume is not None else "--rerun"
        hint = "record again; with --cache on all runs, no call is paid for twice"
        raise UsageError(f"--record requires a complete run, but {flag} runs a part of one", hint)
    if settings.regrade is not None and (settings.record or settings.replay):
        raise UsageError("--regrade uses the stored answers of a run, so it cannot record or replay a cassette")
    if settings.cache and (settings.regrade or settings.replay or settings.rerun):
        other = "--regrade" if settings.regrade else "--replay" if settings.replay else "--rerun"
        raise UsageError(f"--cache and {other} conflict: both set where answers come from", "use one of them")
    if settings.record_code and settings.record is None and settings.replay_mode != "new":
        hint = "use --record FILE, or --replay FILE --replay-mode new"
        raise UsageError("--record-code requires a recording", hint)
    if settings.replay_mode == "new" and settings.replay is None:
        raise UsageError("--replay-mode requires --replay", "add --replay FILE")


def outs_of(outs: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The values of `--out`: the run directory, which is the path without a known suffix, and the exports.

    Raises:
        UsageError: two directories, or a suffix that looks like a slip.
    """
    if not outs:
        return None, ()
    exports = tuple(out for out in outs if _is_export(out))
    directories = [out for out in outs if out not in exports]
    if len(directories) > 1:
        raise UsageError(f"two results directories given: {directories[0]} and {directories[1]}")
    for directory in directories:
        _check_suffix(directory)
    return (directories[0] if directories else None), tuple(dict.fromkeys(exports))


def _is_export(out: str) -> bool:
    if not Path(out).suffix:
        return False
    from agentv.app.exports import is_export  # which loads what reads stored runs

    return is_export(out)


_OTHER_FORMATS = frozenset(
    """
    .pdf .txt .text .yaml .yml .tsv .xls .xlsx .ods .doc .docx .odt .rtf .tex .rst .adoc .log .png .svg .jpg .sarif
    .parquet .sqlite .db .zip .gz .tgz .toml .ndjson .tap
    """.split()  # noqa: SIM905  # a list of words is read as such
)
"""Suffixes of files, of which no run directory is meant."""


def _check_suffix(directory: str) -> None:
    """Refuse `report.htm` and `report.pdf`, of which a directory would be made."""
    suffix = Path(directory).suffix.lower()
    if len(suffix) < len(".xml") or directory.endswith("/") or Path(directory).is_dir():  # `out.d` is no slip
        return
    from agentv.app.export_formats import known_suffixes
    from agentv.authoring.source.nearest import nearest

    known_ones = known_suffixes()
    suggestion = nearest(suffix, known_ones)
    if suggestion is not None or suffix in _OTHER_FORMATS:
        known = f"did you mean '{suggestion}'?" if suggestion is not None else f"there are {', '.join(known_ones)}."
        hint = f"{known} For a results directory with this name, end it with '/'"
        raise UsageError(f"--out {directory}: no export has the suffix '{suffix}'", hint)
