"""Answers of a stored run, to be graded again by the current eval files. No target is called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from agentv.app.planning.answer_sources import answer_cache
from agentv.app.planning.preparation import Prepared, budget_of, prepare, workers_of
from agentv.app.planning.resume import recorded_settings, with_recorded_settings
from agentv.app.results.stored import StoredRun
from agentv.app.settings import EvalSettings, environment_variables
from agentv.app.wiring import Answers, Connections
from agentv.engine.calls.recorded_call import no_answer
from agentv.engine.trial import is_conversation
from agentv.errors import AgentvError, UsageError
from agentv.model.run.trial import Trial
from agentv.model.values.response import TargetResponse
from agentv.model.values.values import objects_in
from agentv.ports import AnswerArchive, Call
from agentv.store.files.directory import JOURNAL
from agentv.user_code.processes import kill_all

if TYPE_CHECKING:
    from agentv.store.cassettes.cache import AnswerCache

T = TypeVar("T")


class ReadOnlyAnswers:
    """An `AnswerLookup` for the stored answers of a run and of the cache. It adds nothing to the run.

    Args:
        earlier: the answers of the run.
        cache: stores the answers of judges; None: no judge is called.
    """

    def __init__(self, earlier: AnswerArchive, cache: AnswerCache | None) -> None:
        self._earlier = earlier
        self._cache = cache

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Write a judge's answer to the cache at once, as there is no journal to recover it from after a crash."""
        if self._cache is not None and not answer.earlier:
            self._cache.keep(call, answer)
            self._cache.flush()

    def stored_answer(self, call: Call) -> Any:
        """Return the answer from the run, else from the cache, or None."""
        found = self._earlier.stored_answer(call)
        if found is None and self._cache is not None:
            found = self._cache.stored_answer(call)
        return None if found is None else replace(found, earlier=True)


def prepare_again(run: StoredRun, *, asks_judge: bool, budget_usd: float | None, judge: str | None = None) -> Prepared:
    """Prepare a stored run again from its current eval files.

    Args:
        run: the stored run.
        asks_judge: judges will be called.
        budget_usd: limit of the judges' cost; None: the budget of the run and its files.
        judge: the judge of all assertions; None: the judges of the run and its files.

    Raises:
        UsageError: the run was started from Python, or its eval files no longer exist.
        LoadError: an eval file is invalid.
    """
    recorded = recorded_settings(run.path)
    texts = {name: recorded.get(name) for name in ("judge", "tests_from", "env_file", "sandbox")}
    given: dict[str, Any] = {name: value for name, value in texts.items() if isinstance(value, str)}
    if judge is not None:
        given["judge"] = judge
    given |= {name: bool(recorded.get(name)) for name in ("allow_outside", "trust_data")}
    variables = recorded.get("variables")
    targets = recorded.get("targets")
    paths: list[Any] = [one.get("path") for one in objects_in(run.record.get("suites"))]
    if not paths or not all(isinstance(path, str) and path for path in paths):
        what = f"the run {run.run_id} has suites that are not in files, so its answers cannot be graded again"
        raise UsageError(what, "run eval files with 'agentv eval'")
    existing = [Path(run.root, path) for path in dict.fromkeys(paths)]
    gone = [path for path in existing if not path.exists()]
    if gone:
        raise UsageError(f"{gone[0]} of the run {run.run_id} is gone", "restore it, or run it again")
    settings = EvalSettings(
        paths=tuple(map(str, existing)),
        targets=tuple(map(str, targets)) if isinstance(targets, list) else (),
        variables=variables if isinstance(variables, dict) else {},
        regrade=str(run.path),
        asks=asks_judge,
        budget_usd=budget_usd,
        **given,
    )
    in_record = environment_variables().values()  # `run.json` has the values that the run used
    env = {name: value for name, value in settings.process_env.items() if name not in in_record}
    settings = with_recorded_settings(replace(settings, process_env=env), recorded, run.run_id)
    settings = replace(settings, against=None, margin=None, until=None, alpha=None)
    return prepare(settings if settings.sample is not None else replace(settings, seed=None))


def why_left_out(trial: Trial) -> str | None:
    """Return why the answer of a trial cannot be graded again, or None if it can."""
    case = trial.case
    if is_conversation(trial):
        return "conversations"
    if case.workspace is not None and case.workspace.existing:
        return "cases whose workspace is a directory of your own"
    if case.tools:
        return "cases with scripted tools"
    return "questions about descriptions" if case.asks_judge else None


@contextmanager
def stored_answers(run: StoredRun, prepared: Prepared, *, judge: bool) -> Iterator[Answers]:
    """Open the stored answers of a run. A target without a stored answer fails instead of being called.

    Args:
        run: the stored run.
        prepared: its plan.
        judge: look up and store judges' answers in the cache.

    Raises:
        UsageError: the run has no stored answers.
        StoreError: its journal or the cache cannot be read.
    """
    from agentv.app.running.kept_work import KeptWorks
    from agentv.store.journal.journal_reader import JournalReader

    if not (run.path / JOURNAL).exists():
        raise UsageError(f"the run {run.run_id} has no stored answers: its {JOURNAL} is missing")
    with closing(JournalReader(run.path / JOURNAL)) as earlier:
        cache = answer_cache(prepared) if judge else None
        try:
            answers = ReadOnlyAnswers(earlier, cache)
            yield Answers(answers, no_answer, works=KeptWorks(earlier))
        finally:
            if cache is not None:
                cache.close()


def with_output(answer: TargetResponse, output: str | None) -> TargetResponse:
    """Return the answer with another text, which also replaces the last message if that repeated the answer."""
    messages = answer.messages
    if messages and messages[-1].role == "assistant" and messages[-1].text == answer.output:
        messages = (*messages[:-1], replace(messages[-1], content=output or ""))
    return replace(answer, output=output, messages=messages)


@asynccontextmanager
async def connected(prepared: Prepared, answers: Answers) -> AsyncIterator[Connections]:
    """Open connections that are limited by the command's budget, and close them at the end."""
    from agentv.engine.calls.budget import Budget, BudgetLimiter

    usd, tokens = budget_of(prepared)
    limiter = None if usd is None and tokens is None else BudgetLimiter(Budget(usd, tokens))
    connections = Connections(workers_of(prepared), limiter, answers)
    try:
        await connections.imported.load(prepared.suites, connections.executor)
        yield connections
    finally:
        await connections.close()
        kill_all()


async def in_parallel(work: Iterable[Callable[[], Awaitable[T]]], workers: int) -> list[T]:
    """Return the results of coroutine functions, in order, running at most `workers` at once.

    After an error no further function is called; running ones finish first, so that answers already paid for are kept.
    """
    results: dict[int, T] = {}
    errors: list[AgentvError] = []
    left = iter(enumerate(work))

    async def worker() -> None:
        for number, call in left:
            if errors:
                return
            try:
                results[number] = await call()
            except AgentvError as error:
                errors.append(error)

    await asyncio.gather(*(worker() for _ in range(workers)))
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(results))]
