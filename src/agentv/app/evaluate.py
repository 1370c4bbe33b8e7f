"""`agentv eval`: load, plan, run, keep, sum up."""

from __future__ import annotations

import asyncio
import json
import platform
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from agentv.app.sampling import sample_of
from agentv.app.settings import EvalSettings, check_settings
from agentv.app.wiring import Connections, redactor_for, registries
from agentv.engine.order import Order, standing
from agentv.engine.plan import Plan, PlanSettings, everyone, without
from agentv.engine.run import Run
from agentv.engine.stops import is_stopped
from agentv.errors import Diagnostic, ExitStatus, LoadError, StoreError, UsageError
from agentv.foreign.processes import kill_all
from agentv.model.events import Event, RunFinished, TargetStopped, TrialFinished, TrialKept
from agentv.model.suite import DEFAULT_WORKERS, Suite
from agentv.model.summary import Summary
from agentv.model.trial import Trial, TrialResult
from agentv.model.values import Json
from agentv.model.verdict import ZERO_HINT, excludes_nothing
from agentv.reports.totals import plural
from agentv.spec.files import repository_root, shown
from agentv.spec.load import LoadRequest, load
from agentv.store.directory import INDEX, RUN, RunDirectory, results_directory
from agentv.store.journal import Journal
from agentv.store.reading import read_rows
from agentv.store.results import read_results
from agentv.store.summary import Planned, summarize, write_summary
from agentv.version import __version__

GRACE_S = 10.0
"""Seconds that running trials get after the first Ctrl-C."""

ADDED_SHOWN = 10
"""Cases that run because others need them, and that are named."""

Sink = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything is read and right; nothing has been called yet.

    Attributes:
        diagnostics: warnings and hints of the files.
        counts: how many cases (on their targets) and trials the plan holds.
        notes: what people should know of the plan, such as cases that run because others need them.
    """

    settings: EvalSettings
    suites: tuple[Suite, ...]
    plan: Plan
    counts: tuple[int, int]
    diagnostics: tuple[Diagnostic, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    Attributes:
        directory: where the results are.
        interrupted: Ctrl-C or a signal ended it early.
        notes: what people should know of the directory, such as a torn line that was cut.
        held_back: cases that were not run because of what became of those that they hang on.
    """

    run_id: str
    directory: Path
    summary: Summary
    interrupted: bool
    notes: tuple[str, ...] = ()
    held_back: int = 0

    @property
    def status(self) -> ExitStatus:
        """The exit status (SPEC section 12). Only judged, good enough answers make it 0.

        A case that was held back adds nothing to what the one says that it hangs on: that one failed, or errored.
        """
        cases = self.summary.cases
        if self.interrupted:
            return ExitStatus.INTERRUPTED
        if cases.errored or cases.skipped > self.held_back:
            return ExitStatus.ERRORED
        return ExitStatus.FAILED if cases.failed or cases.skipped or not cases.passed else ExitStatus.PASSED


def prepare(settings: EvalSettings) -> Prepared:
    """Read and check everything that a run needs.

    Raises:
        LoadError: a file is wrong.
        UsageError: the settings ask for what cannot be, such as a filter that selects nothing.
    """
    check_settings(settings)
    loaded = load(_request(settings), registries())
    suites = loaded.suites
    diagnostics = (*_of_settings(settings, suites), *loaded.diagnostics)
    if settings.strict and any(found.severity == "warning" for found in diagnostics):
        raise LoadError(diagnostics)
    plan = Plan(suites, _plan_settings(settings, suites))
    counts = plan.counts()
    if not counts[1]:
        raise _nothing_chosen(settings, suites)
    return Prepared(settings, suites, plan, counts, diagnostics, tuple(_notes(plan)))


def _notes(plan: Plan) -> Iterator[str]:
    added = list(plan.added())
    if added:
        named = ", ".join(added[:ADDED_SHOWN]) + (", …" if len(added) > ADDED_SHOWN else "")
        yield f"{plural(len(added), 'case')} more, since chosen ones need them: {named}"


def _of_settings(settings: EvalSettings, suites: tuple[Suite, ...]) -> Iterator[Diagnostic]:
    """What the flags make of files that are right."""
    zero = settings.threshold
    if zero is None or not any(excludes_nothing(zero, case.assertions) for suite in suites for case in suite.cases):
        return
    yield Diagnostic("zero-threshold", "with --threshold 0 every answer passes", severity="warning", hint=ZERO_HINT)


def evaluate(prepared: Prepared, sink: Sink) -> Outcome:
    """Run what was prepared. Every event goes to the sink, from this thread.

    Raises:
        StoreError: the run directory cannot be made, opened or written.
    """
    return asyncio.run(evaluate_async(prepared, sink, signals=True))


async def evaluate_async(prepared: Prepared, sink: Sink, *, signals: bool = False) -> Outcome:
    """As `evaluate`, in a loop that runs already. `signals`: SIGINT and SIGTERM end the run in good order.

    Raises:
        StoreError: as `evaluate`.
    """
    with _directory(prepared) as directory:
        evaluation = _Evaluation(prepared, directory, sink)
        try:
            return await evaluation.run(signals=signals)
        except StoreError as error:
            if evaluation.begun:
                error.status = ExitStatus.ERRORED  # trials ran, and what they gave could not be kept
            raise


class _Evaluation:
    """One run, from an open directory to its outcome."""

    def __init__(self, prepared: Prepared, directory: RunDirectory, sink: Sink) -> None:
        self._prepared = prepared
        self._directory = directory
        self._sink = sink
        self._root = root_of(prepared.suites)
        self._held_back: set[tuple[int, str, str]] = set()
        self._left_out = 0
        self.begun = False

    async def run(self, *, signals: bool) -> Outcome:
        """Run the trials that have no row yet."""
        prepared, directory = self._prepared, self._directory
        with Journal(directory, self._root) as journal:
            kept = self._kept(journal) if prepared.settings.resume else {}
            directory.write(RUN, _record(prepared, directory.run_id))
            connections = Connections(_workers(prepared))
            run = Run(
                directory.run_id,
                self._trials(kept),
                prepared.counts[1] - len(kept),
                workers=_workers(prepared),
                world=connections.world(journal),
                max_errors=_max_errors(prepared),
            )
            self.begun = True
            try:
                with _signals(run) if signals else nullcontext():
                    finished = await self._consume(run, journal)
            finally:
                await connections.close()
                kill_all()
        return self._outcome(finished, (*journal.mended, *_damage(journal.damaged), *_others(self._left_out)))

    def _kept(self, journal: Journal) -> dict[str, TrialResult | None]:
        """The keys of the planned trials that stand; their results are shown with those to come.

        The results themselves are held only where trials to come hang on them.
        """
        for _ in journal.answers():  # so that a damaged one is told
            pass
        linked = any(suite.links for suite in self._prepared.suites)
        rows = set(journal.finished())
        kept: dict[str, TrialResult | None] = dict.fromkeys(standing(self._prepared.plan, rows))
        self._left_out = len(rows - kept.keys())
        for result in read_results(self._directory.path / INDEX, self._root):
            if result.trial.key in kept:
                self._sink(TrialKept(result))
                if linked:
                    kept[result.trial.key] = result
        return kept

    def _trials(self, kept: Mapping[str, TrialResult | None]) -> Iterable[Trial] | Order:
        """What is to do, in order where cases hang on each other."""
        plan = self._prepared.plan
        to_do = without(plan, kept)
        if not any(suite.links for suite in self._prepared.suites):
            return to_do
        order = Order(plan, to_do)
        for trial in plan if kept else ():
            result = kept.get(trial.key)
            if result is not None:
                order.keep(replace(result, trial=trial))
        return order

    async def _consume(self, run: Run, journal: Journal) -> RunFinished:
        """Keep every row, then show it: the order that a crash cannot turn into a lie."""
        redactor = self._directory.redactor
        last: RunFinished | None = None
        async for event in run.events():
            if isinstance(event, TrialFinished):
                journal.finish(event.result)
                if event.result.status == "skipped" and not is_stopped(event.result.error):
                    trial = event.result.trial
                    self._held_back.add((id(trial.suite), trial.target.name, trial.case.id))
                if redactor:
                    event = TrialFinished(redactor.redact_result(event.result))  # noqa: PLW2901  # what is shown holds no secret
            elif isinstance(event, TargetStopped):
                event = TargetStopped(event.name, redactor.redact(event.reason))  # noqa: PLW2901  # as above
            elif isinstance(event, RunFinished):
                last = event
            self._sink(event)
        assert last is not None  # noqa: S101  # a run's last event
        return last

    def _outcome(self, finished: RunFinished, mended: tuple[str, ...]) -> Outcome:
        directory, prepared = self._directory, self._prepared
        cases, trials = prepared.counts
        resumed = prepared.settings.resume is not None
        summary = summarize(
            read_rows(directory.path / INDEX),
            run_id=directory.run_id,
            planned=Planned(cases=cases, trials=trials),
            duration_ms=finished.duration_ms,
            current={trial.key for trial in prepared.plan} if resumed else None,
        )
        write_summary(directory, summary)
        interrupted, held_back = finished.interrupted, len(self._held_back)
        return Outcome(directory.run_id, directory.path, summary, interrupted, mended, held_back)


def _damage(lines: int) -> Iterator[str]:
    """What a resumed run found in its journal."""
    if lines:
        number = "1 answer" if lines == 1 else f"{lines} answers"
        what = f"journal.jsonl: {number} passed over, for the checksum does not agree: the file was changed or damaged"
        yield f"{what}; trials that had finished keep their rows, all others are asked again"


def _others(rows: int) -> Iterator[str]:
    """What stands in the directory of a resumed run, and is no part of it any more."""
    if rows:
        number = "1 row" if rows == 1 else f"{rows:,} rows"
        what = "of cases that changed, or of other cases, targets or settings than these"
        yield f"{number} of this run not counted: {what}"


def _request(settings: EvalSettings) -> LoadRequest:
    return LoadRequest(
        paths=settings.paths,
        targets=settings.asked_targets,
        judge=settings.asked_judge,
        variables=settings.variables,
        process_env=settings.process_env,
        env_file=settings.env_file,
        documents=settings.documents,
        given_target=settings.given_target,
        given_judge=settings.given_judge,
    )


def _plan_settings(settings: EvalSettings, suites: tuple[Suite, ...]) -> PlanSettings:
    chosen = settings.chooses if settings.filter is not None or settings.tags or settings.exclude_tags else everyone
    root = root_of(suites)
    resumed = find_run(settings.resume, Path(root), settings.out) if settings.resume and settings.sample else None
    return PlanSettings(
        repeat=settings.repeat,
        threshold=settings.threshold,
        timeout_s=settings.timeout_s,
        flagged_targets=bool(settings.asked_targets) or settings.given_target is not None,
        chosen=chosen,
        limit=settings.limit,
        sample=sample_of(settings, suites, chosen, root=root, record=resumed / RUN if resumed else None),
    )


def _nothing_chosen(settings: EvalSettings, suites: tuple[Suite, ...]) -> UsageError:
    from agentv.spec.nearest import did_you_mean

    chosen_by = [
        f"--filter '{settings.filter}'" if settings.filter is not None else "",
        f"--tag {', '.join(settings.tags)}" if settings.tags else "",
        f"--exclude-tag {', '.join(settings.exclude_tags)}" if settings.exclude_tags else "",
        f"--sample {settings.sample}" if settings.sample is not None else "",
        f"--limit {settings.limit}" if settings.limit is not None else "",
    ]
    asked = " ".join(one for one in chosen_by if one) or "these files"
    ids = [case.id for suite in suites for case, _ in zip(suite.cases, range(1000), strict=False)]
    hint = did_you_mean(settings.filter, ids) if settings.filter is not None else None
    if hint is None and settings.tags:
        tags = {tag for suite in suites for case, _ in zip(suite.cases, range(1000), strict=False) for tag in case.tags}
        hint = f"there are the tags {', '.join(sorted(tags)[:20])}" if tags else "no case has a tag"
    return UsageError(f"{asked} selects no case", hint)


@contextmanager
def _directory(prepared: Prepared) -> Iterator[RunDirectory]:
    """The run's directory: a new one, or that of the run to go on with."""
    settings = prepared.settings
    root = Path(root_of(prepared.suites))
    redactor = redactor_for(prepared.suites)
    if settings.resume is not None:
        run = find_run(settings.resume, root, settings.out)
        _refuse_other_suites(run, prepared.suites, str(root))
        opened = RunDirectory.open(run, redactor=redactor)
    else:
        out = Path(settings.out) if settings.out else None
        opened = RunDirectory.create(root, datetime.now(UTC), out=out, redactor=redactor)
    with opened:
        yield opened


def _refuse_other_suites(run: Path, suites: tuple[Suite, ...], root: str) -> None:
    """A run goes on with a suite that it began with: its totals are of one thing.

    Raises:
        UsageError: it was of other suites.
    """
    try:
        recorded = json.loads((run / RUN).read_bytes())["suites"]
        began = [(one["name"], one["path"]) for one in recorded]
    except (OSError, ValueError, LookupError, TypeError):
        return  # whoever opens it says what is wrong with it
    own = {(suite.name, suite.path.removeprefix(f"{root}/")) for suite in suites}
    if began and own.isdisjoint(began):
        names = ", ".join(path or name for name, path in began)
        raise UsageError(f"the run {run.name} is one of {names}", "--resume=RUN goes on with another run")


def find_run(named: str, root: Path, out: str | None = None) -> Path:
    """The directory of a run: an id, a directory, or `last`.

    Raises:
        UsageError: there is none.
    """
    results = results_directory(root)
    if named == "last":
        if out is not None:
            return Path(out)
        runs = sorted(path for path in results.iterdir() if (path / RUN).is_file()) if results.is_dir() else []
        if not runs:
            raise UsageError(f"there is nothing to resume: {shown(str(results))} holds no run")
        return runs[-1]
    for candidate in (results / named, Path(named)):
        if (candidate / RUN).is_file():
            return candidate
    raise UsageError(f"there is nothing to resume: no run '{named}' in {shown(str(results))}")


def root_of(suites: tuple[Suite, ...]) -> str:
    """The repository root of the first suite that stands in a file, else that of the working directory."""
    paths = [suite.path for suite in suites if suite.path]
    return repository_root(str(Path(paths[0]).parent) if paths else str(Path.cwd()))


def _workers(prepared: Prepared) -> int:
    asked = prepared.settings.workers
    said = [suite.run.workers for suite in prepared.suites if suite.run.workers is not None]
    return asked or max(said, default=DEFAULT_WORKERS)


def _max_errors(prepared: Prepared) -> int | None:
    asked = prepared.settings.max_errors
    said = [suite.run.max_errors for suite in prepared.suites if suite.run.max_errors is not None]
    return asked if asked is not None else min(said, default=None)


def _record(prepared: Prepared, run_id: str) -> dict[str, Json]:
    """`run.json`: what was run, without secrets."""
    cases, trials = prepared.counts
    return {
        "run_id": run_id,
        "started": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "agentv": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "git_commit": _commit(root_of(prepared.suites)),
        "planned": {"cases": cases, "trials": trials},
        "settings": _settings_record(prepared),
        "suites": [_suite_record(suite, root_of(prepared.suites)) for suite in prepared.suites],
    }


def _settings_record(prepared: Prepared) -> dict[str, Json]:
    settings, sample = prepared.settings, prepared.plan.settings.sample
    return {
        "paths": list(settings.paths),
        "targets": list(settings.asked_targets),
        "judge": settings.asked_judge,
        "workers": _workers(prepared),
        "repeat": settings.repeat,
        "threshold": settings.threshold,
        "timeout_s": settings.timeout_s,
        "filter": settings.filter,
        "tags": list(settings.tags),
        "exclude_tags": list(settings.exclude_tags),
        "sample": settings.sample,
        "seed": sample.seed if sample else None,
        "limit": settings.limit,
    }


def _suite_record(suite: Suite, root: str) -> dict[str, Json]:
    return {
        "name": suite.name,
        "path": suite.path.removeprefix(f"{root}/"),
        "metadata": dict(suite.metadata),
        "tags": list(suite.tags),
        "targets": [{"name": target.name, **target.public} for target in suite.targets],
        "prompts": [{"id": identity, "label": label} for identity, label in suite.prompts.items()],
        "judge": suite.judge.name if suite.judge else None,
        "files": {path.removeprefix(f"{root}/"): digest for path, digest in suite.files.items()},
    }


def _commit(root: str) -> str | None:
    """The commit that is checked out, read from `.git` itself: starting git would take longer than a small run."""
    git = Path(root) / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        loose = git / name
        if loose.is_file():
            return loose.read_text(encoding="utf-8").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)
    except (OSError, UnicodeDecodeError):
        return None


@contextmanager
def _signals(run: Run) -> Iterator[None]:
    """SIGINT and SIGTERM: the first lets running trials finish for a while, the second gives them up."""
    loop = asyncio.get_running_loop()
    asked = 0

    def on_signal() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            run.stop()
            loop.call_later(GRACE_S, run.abort)
        else:
            run.abort()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
