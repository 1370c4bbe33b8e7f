"""Python API: runs a path, a Suite or a mapping, and returns typed results."""

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
"""An entry of `assert:`: a sentence, or a mapping in any form that an eval file can have."""

AskedTarget: TypeAlias = "str | Callable[..., Any] | Mapping[str, Any]"
"""A name or `provider:rest`, a function that answers a prompt, or the settings of a target."""


Said: TypeAlias = "str | Mapping[str, Any] | Sequence[Mapping[str, Any]]"
"""The content of a turn: a text, a message, or several messages."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One question of a case with several, and the assertions that grade its answer."""

    input: Said
    assertions: Sequence[Authored] = ()
    criteria: str | None = None
    expected_output: Said | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """One test, as in `tests:` of an eval file; the names are the same, but for `assertions`.

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
        """The same case as a mapping, as in an eval file."""
        return _given_fields(self)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Cases and their shared settings, as in an eval file; the names are the same, but for `assertions`."""

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
        """The same suite as a mapping, as in an eval file."""
        tests = [test.authored() if isinstance(test, Case) else dict(test) for test in self.tests]
        return {**_given_fields(self), "tests": tests}


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The results of a run. A notebook shows it as a table.

    Attributes:
        summary: its totals, computed from the rows on disk.
        results: one per finished trial, in the order in which they finished; those of a resumed run come first. A
            trial that was skipped because of another one has a result too, with the status `skipped`.
        status: the exit status of `agentv eval` for this run.
        directory: of the rows, the journal and the summary.
        diagnostics: warnings of the files.
    """

    run_id: str
    summary: Summary
    results: tuple[TrialResult, ...]
    status: ExitStatus
    directory: Path
    diagnostics: tuple[Diagnostic, ...] = field(default=(), repr=False)

    @property
    def passed(self) -> bool:
        """Whether every case was graded and is good enough."""
        return self.status is ExitStatus.PASSED

    def to_pandas(self) -> pd.DataFrame:
        """The results as a DataFrame of pandas: one row per trial, and the columns of a CSV export.

        `tags` holds lists. Scores, variables and metadata have columns of their own: `scores.NAME`, `vars.NAME`,
        `metadata.NAME`.

        Raises:
            UsageError: pandas is not installed.
        """
        from agentv.reports.notebook import frame_of

        return frame_of(self.results, root=str(Path.cwd()))

    def __repr__(self) -> str:
        """The totals on one line."""
        return f"<Evaluation {self.run_id}: {outcomes(self.summary.cases)}>"

    def __str__(self) -> str:
        """The totals, as `agentv eval` prints them."""
        return "\n".join(totals(self.summary, 0, shown_from(str(self.directory), str(Path.cwd()))))

    def _repr_html_(self) -> str:
        """A table for notebooks, those that did not pass first."""
        from agentv.reports.notebook import render_table

        return render_table(self.results, str(self).splitlines())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What Jupyter shows: the table, or the totals where there is no HTML."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}


Given: TypeAlias = "str | TargetSpec | Mapping[str, Json] | None"
"""An asked target as the settings take it."""

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

    Where an event loop is running, as in a notebook, the run gets a thread and a loop of its own, and this call blocks
    until it ends. What belongs to the caller's loop, such as a session or a lock that an `async` function uses, does
    not work on another one: await `evaluate_async` then. An interrupt ends the run in good order, keeps the finished
    trials, and raises KeyboardInterrupt, which says how to resume.

    Args:
        source: an eval file, a directory or several of them; a Suite; or the content of an eval file.
        target: target to evaluate; overrides the source. A function receives the parameters that it names, out of
            prompt, messages, vars, metadata and case_id. It runs in this process, unguarded: a plain function on a
            thread, an `async` one on the event loop of the run, which it must not block. Functions in files run in
            processes of their own.
        judge: model that grades rubrics; overrides the source.
        progress: in a notebook, show a line of progress below the cell.
        options: the flags of `agentv eval`, with underscores: `--max-errors 3` is max_errors=3, and a switch is True.
            Repeatable ones take a list: filter, tags, exclude_tags, prompts, exports (`--out FILE`); variables
            (`--var`) takes a mapping. `--timeout` is timeout_s.

    Returns:
        The results; a failed or errored case raises no exception.

    Raises:
        LoadError: the source is invalid; contains a diagnostic for each mistake.
        UsageError: there is nothing to run.
        StoreError: the results cannot be written.
        KeyboardInterrupt: the run was interrupted.
    """
    if is_loop_running():
        return _beside_the_loop(_settings(source, target, judge, options), progress=progress)
    found: list[Evaluation] = []

    async def main() -> None:  # returns nothing: asyncio may write out what the outermost task returns, all of it
        found.append(await _evaluated(_settings(source, target, judge, options)))

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
    """Like `evaluate`, inside an event loop, which stays free for other tasks.

    The functions `target` and `judge` are awaited on this loop, where the caller's sessions and locks belong. Functions
    in files run in processes of their own.
    """
    shown = cell_progress() if progress else None
    try:
        return await _evaluated(_settings(source, target, judge, options), shown, draws=True)
    finally:
        if shown is not None:
            shown.draw(now=True)


def _beside_the_loop(settings: EvalSettings, *, progress: bool) -> Evaluation:
    """The run on a thread of its own; this one shows its progress."""
    stops, shown = StopRequests(), cell_progress() if progress else None
    opened: list[str] = []
    try:
        return run_in_thread(
            lambda: _evaluated(settings, shown, stops=stops, opened=opened),
            stops,
            None if shown is None else shown.draw,
        )
    except KeyboardInterrupt as interrupt:
        kept = f"; finished trials are saved. Resume with evaluate(…, resume='{opened[0]}')" if opened else ""
        raise KeyboardInterrupt(f"interrupted{kept}") from interrupt
    finally:
        if shown is not None:
            shown.draw(now=True)


async def _evaluated(
    settings: EvalSettings,
    shown: CellProgress | None = None,
    *,
    draws: bool = False,
    stops: StopRequests | None = None,
    opened: list[str] | None = None,
) -> Evaluation:
    """The results of a run.

    Args:
        settings: of the run.
        shown: counts its events.
        draws: show the progress after each event, from this thread.
        stops: end the run when another thread asks for it.
        opened: gets the id of the run when it begins.
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
    target, judge = _given(asked_target), _given(asked_judge)
    _check_given(target, judge, options)
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


def _check_given(target: object, judge: object, options: Mapping[str, Any]) -> None:
    """Refuse arguments that no run can be made of, in the words of whoever calls.

    Raises:
        UsageError: a target or judge is of the wrong type, or an option is unknown or set in another way.
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


def _given(asked: AskedTarget | None) -> Given:
    """What was asked for, a function as the target that it is."""
    return callable_target(asked) if callable(asked) else asked


def _given_fields(made: Suite | Case | Turn) -> dict[str, Any]:
    """The fields that were given, by their names in a file."""
    given = {one.name: getattr(made, one.name) for one in fields(made)}
    if given.get("turns"):
        given["turns"] = [_given_fields(turn) if isinstance(turn, Turn) else dict(turn) for turn in given["turns"]]
    renamed = {"assert" if name == "assertions" else name: value for name, value in given.items()}
    return {name: value for name, value in renamed.items() if value is not None and value != ()}
