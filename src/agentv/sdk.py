"""The Python API: run an eval file, a Suite or a mapping, and get typed results."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from agentv.app.planning.preparation import prepare
from agentv.app.running.drive import StopRequests
from agentv.app.running.evaluate import evaluate_async as run_async
from agentv.app.running.notebook import CellProgress, cell_progress, is_loop_running, run_in_thread
from agentv.app.settings import EvalSettings, declared_settings
from agentv.app.wiring import callable_target
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import Diagnostic, ExitStatus, UsageError
from agentv.model.run.events import Event, TrialFinished, TrialKept
from agentv.model.run.summary import Summary
from agentv.model.run.trial import TrialResult
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.values import Json
from agentv.reports.run.totals import outcomes, totals
from agentv.reports.text import shown_from

if TYPE_CHECKING:
    import pandas as pd

Authored: TypeAlias = "str | Mapping[str, Any]"
"""An entry of `assert:`: a sentence, or a mapping in any form that an eval file allows."""

AskedTarget: TypeAlias = "str | Callable[..., Any] | Mapping[str, Any]"
"""A target: a name or `provider:rest`, a function that answers a prompt, or settings."""


Said: TypeAlias = "str | Mapping[str, Any] | Sequence[Mapping[str, Any]]"
"""The content of a turn: a text, a message, or several messages."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn of a case with several, and the assertions that grade its answer."""

    input: Said
    assertions: Sequence[Authored] = ()
    criteria: str | None = None
    expected_output: Said | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """One test, as in `tests:` of an eval file. Names are the same, except that `assert` is `assertions`.

    Set either `input` or `turns`.
    """

    id: str
    input: Said | None = None
    assertions: Sequence[Authored] = ()
    criteria: str | None = None
    description: str | None = None
    expected_output: Said | None = None
    vars: Mapping[str, Any] | None = None
    expand: bool | None = None
    metadata: Mapping[str, Any] | None = None
    tags: Sequence[str] = ()
    threshold: float | None = None
    repeat: int | None = None
    timeout_s: float | None = None
    skip_defaults: bool | None = None
    turns: Sequence[Turn | Mapping[str, Any]] = ()
    conversation_id: str | None = None
    depends_on: str | Sequence[str] = ()

    def authored(self) -> dict[str, Any]:
        """Return the case as a mapping, as in an eval file."""
        return _given_fields(self)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Cases and their shared settings, as in an eval file. Names are the same, except that `assert` is `assertions`."""

    name: str
    tests: Sequence[Case | Mapping[str, Any]]
    assertions: Sequence[Authored] = ()
    target: str | Mapping[str, Any] | None = None
    judge: str | Mapping[str, Any] | None = None
    prompts: Sequence[str | Mapping[str, Any] | Sequence[Mapping[str, Any]]] = ()
    threshold: float | None = None
    description: str | None = None
    metadata: Mapping[str, Any] | None = None
    tags: Sequence[str] = ()
    run: Mapping[str, Any] | None = None
    env: Mapping[str, str] | None = None
    cluster: str | None = None

    def authored(self) -> dict[str, Any]:
        """Return the suite as a mapping, as in an eval file."""
        tests = [test.authored() if isinstance(test, Case) else dict(test) for test in self.tests]
        return {**_given_fields(self), "tests": tests}


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The results of a run, shown as a table in notebooks.

    Attributes:
        summary: totals, computed from the rows on disk.
        results: one per finished trial, in the order in which they finished; results from before a run was resumed come
            first. A trial that was skipped because of another one has a result too, with the status `skipped`.
        status: the exit status of `agentv eval` for this run.
        directory: the run directory, with the rows, the journal and the summary.
        diagnostics: warnings about the files.
    """

    run_id: str
    summary: Summary
    results: tuple[TrialResult, ...]
    status: ExitStatus
    directory: Path
    diagnostics: tuple[Diagnostic, ...] = field(default=(), repr=False)

    @property
    def passed(self) -> bool:
        """Whether every case was graded and passed."""
        return self.status is ExitStatus.PASSED

    def to_pandas(self) -> pd.DataFrame:
        """Return the results as a pandas DataFrame with one row per trial and the columns of a CSV export.

        `tags` contains lists. Scores, variables and metadata have a column each: `scores.NAME`, `vars.NAME`,
        `metadata.NAME`.

        Raises:
            UsageError: pandas is not installed.
        """
        from agentv.reports.notebook import frame_of

        return frame_of(self.results, root=str(Path.cwd()))

    def __repr__(self) -> str:
        return f"<Evaluation {self.run_id}: {outcomes(self.summary.cases)}>"

    def __str__(self) -> str:
        """Return the totals, as `agentv eval` prints them."""
        return "\n".join(totals(self.summary, 0, shown_from(str(self.directory), str(Path.cwd()))))

    def _repr_html_(self) -> str:
        """Return a table for notebooks, with trials that did not pass first."""
        from agentv.reports.notebook import render_table

        return render_table(self.results, str(self).splitlines())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what Jupyter shows: the table, or the totals if it cannot show HTML."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}


Given: TypeAlias = "str | TargetSpec | Mapping[str, Json] | None"
"""A target or judge in the form that `EvalSettings` takes."""

Source: TypeAlias = "str | os.PathLike[str] | Suite | Mapping[str, Any] | Sequence[str | os.PathLike[str]]"


def evaluate(
    source: Source,
    *,
    target: AskedTarget | None = None,
    judge: AskedTarget | None = None,
    progress: bool = True,
    **options: Any,
) -> Evaluation:
    """Run the cases of a path, a Suite or a mapping, and grade the answers.

    If an event loop is running, as in a notebook, the run gets a thread and a loop of its own, and this call blocks
    until it ends. Objects that belong to the caller's loop, such as a session or a lock that an `async` function uses,
    do not work on another loop: await `evaluate_async` instead. An interrupt ends the run gracefully, keeps the
    finished trials, and raises KeyboardInterrupt with a message that says how to resume.

    Args:
        source: an eval file, a directory or several of them; a Suite; or the content of an eval file.
        target: target to evaluate; overrides the source. A function may declare the parameters prompt, messages, vars,
            metadata and case_id, in any combination. It runs in this process, without isolation: a plain function on a
            thread, an `async` one on the event loop of the run, which it must not block. Functions in files run in
            separate processes.
        judge: model that grades rubrics; overrides the source.
        progress: in a notebook, show a progress line below the cell.
        options: the flags of `agentv eval`, with underscores: `--max-errors 3` is max_errors=3, and a switch is True.
            Repeatable flags take a list: filter, tags, exclude_tags, prompts, exports (`--out FILE`); variables
            (`--var`) takes a mapping. `--timeout` is timeout_s.

    Returns:
        The results; a failed or errored case raises no exception.

    Raises:
        LoadError: the source is invalid; has a diagnostic for each mistake.
        UsageError: an argument is invalid, or there is nothing to run.
        StoreError: the results cannot be written.
        KeyboardInterrupt: the run was interrupted.
    """
    if is_loop_running():
        return _evaluate_in_thread(_settings(source, target, judge, options), progress=progress)
    found: list[Evaluation] = []

    async def main() -> None:  # returns nothing, because asyncio may print the whole result of the outermost task
        found.append(await _evaluate(_settings(source, target, judge, options)))

    asyncio.run(main())
    return found[0]


async def evaluate_async(
    source: Source,
    *,
    target: AskedTarget | None = None,
    judge: AskedTarget | None = None,
    progress: bool = True,
    **options: Any,
) -> Evaluation:
    """Like `evaluate`, but on the running event loop, which stays free for other tasks.

    If `target` or `judge` is an `async` function, it runs on this loop, so that it can use the caller's sessions and
    locks. Functions in files run in separate processes.
    """
    shown = cell_progress() if progress else None
    try:
        return await _evaluate(_settings(source, target, judge, options), shown, draws=True)
    finally:
        if shown is not None:
            shown.draw(now=True)


def _evaluate_in_thread(settings: EvalSettings, *, progress: bool) -> Evaluation:
    """Run on a new thread, and show the progress from this one."""
    stops, shown = StopRequests(), cell_progress() if progress else None
    opened: list[str] = []
    try:
        return run_in_thread(
            lambda: _evaluate(settings, shown, stops=stops, opened=opened),
            stops,
            None if shown is None else shown.draw,
        )
    except KeyboardInterrupt as interrupt:
        kept = f"; finished trials are saved. Resume with evaluate(…, resume='{opened[0]}')" if opened else ""
        raise KeyboardInterrupt(f"interrupted{kept}") from interrupt
    finally:
        if shown is not None:
            shown.draw(now=True)


async def _evaluate(
    settings: EvalSettings,
    shown: CellProgress | None = None,
    *,
    draws: bool = False,
    stops: StopRequests | None = None,
    opened: list[str] | None = None,
) -> Evaluation:
    """Run and return the results.

    Args:
        settings: settings of the run.
        shown: progress to which every event is added.
        draws: draw the progress after each event, on this thread.
        stops: requests of another thread to end the run.
        opened: list to which the id of the run is added when it begins.
    """
    prepared = prepare(settings)
    results: list[TrialResult] = []

    def keep(event: Event) -> None:
        if isinstance(event, TrialFinished | TrialKept):
            results.append(event.result)
        if shown is not None:
            shown.add(event)
            if draws:
                shown.draw()

    def note(run_id: str, _: Path) -> None:
        if opened is not None:
            opened.append(run_id)

    outcome = await run_async(prepared, keep, opened=note, stops=stops)
    return Evaluation(
        run_id=outcome.run_id,
        summary=outcome.summary,
        results=tuple(results),
        status=outcome.status,
        directory=outcome.directory,
        diagnostics=prepared.diagnostics,
    )


_SEVERAL_TARGETS = "target is one target; to evaluate several, set 'targets' in the suite"
_OPTIONS = frozenset(EvalSettings.__struct_fields__) - {"paths", "documents", "given_target", "given_judge"}


def _settings(
    source: Source, asked_target: AskedTarget | None, asked_judge: AskedTarget | None, options: Mapping[str, Any]
) -> EvalSettings:
    target, judge = _as_setting(asked_target), _as_setting(asked_judge)
    _check_arguments(target, judge, options)
    documents: tuple[Mapping[str, Json], ...] = ()
    paths: tuple[str, ...] = ()
    if isinstance(source, Suite):
        documents = (source.authored(),)
    elif isinstance(source, Mapping):
        documents = (source,)
    elif isinstance(source, str | os.PathLike):
        paths = (os.fspath(source),)
    else:
        paths = tuple(os.fspath(one) for one in source)
    return EvalSettings(
        paths=paths,
        documents=documents,
        targets=(target,) if isinstance(target, str) else (),
        judge=judge if isinstance(judge, str) else None,
        given_target=None if isinstance(target, str) else target,
        given_judge=None if isinstance(judge, str) else judge,
        **{name: declared_settings()[name].given(value) for name, value in options.items()},
    )


def _check_arguments(target: object, judge: object, options: Mapping[str, Any]) -> None:
    """Check the arguments of `evaluate`, with messages in terms of the Python API.

    Raises:
        UsageError: a target or judge has the wrong type, an option is unknown, or `targets` is given.
    """
    for name, value in {"target": target, "judge": judge}.items():
        if value is not None and not isinstance(value, str | TargetSpec | Mapping):
            what = f"{name} must be a name, a function or a mapping, found a value of type {type(value).__name__}"
            several = name == "target" and isinstance(value, Sequence | AbstractSet)
            raise UsageError(what, _SEVERAL_TARGETS if several else None)
    if "targets" in options:
        raise UsageError("targets is no option of evaluate()", _SEVERAL_TARGETS)
    for name in options:
        if name not in _OPTIONS:
            raise UsageError(f"evaluate() has no option '{name}'", did_you_mean(name, _OPTIONS))


def _as_setting(asked: AskedTarget | None) -> Given:
    """Return the target or judge as `EvalSettings` takes it, with a function converted to a target."""
    return callable_target(asked) if callable(asked) else asked


def _given_fields(made: Suite | Case | Turn) -> dict[str, Any]:
    """Return the fields that are set, by their names in an eval file."""
    given = {one.name: getattr(made, one.name) for one in fields(made)}
    if given.get("turns"):
        given["turns"] = [_given_fields(turn) if isinstance(turn, Turn) else dict(turn) for turn in given["turns"]]
    renamed = {"assert" if name == "assertions" else name: value for name, value in given.items()}
    return {name: value for name, value in renamed.items() if value is not None and value != ()}
