"""The composition root of a run: connects its targets, judges and answer stores."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field

from agentv.app.changed_files import ImportedCode, SuiteFiles, directories_of_targets, unchanged
from agentv.engine.calls.call_throttle import CallThrottle
from agentv.engine.calls.recorded_call import RecordedTarget, Unanswered
from agentv.engine.grading import GraderCheck
from agentv.model.redaction import Redactor
from agentv.model.run.context import Judge
from agentv.model.suite.suite import AGENT_JUDGE_TIMEOUT_S, DEFAULT_WORKERS, JUDGE_TIMEOUT_S, Suite, TargetSpec
from agentv.model.values.response import Embeddings, Failure, TargetResponse
from agentv.ports import AnswerLookup, Call, Connectable, Embedder, Executor, SpendingLog, Target, TargetRequest
from agentv.registry.extensions import PORTS, loaded
from agentv.targets.http.answers import checked
from agentv.user_code.guard import ForeignError, foreign_code
from agentv.user_code.threads import DaemonThreads
from agentv.work_ports import ModelExchanges, TrialWorks, WorkArchive

if TYPE_CHECKING:
    from agentv.engine.calls.budget import BudgetLimiter
    from agentv.engine.calls.embeddings import EmbeddingCache
    from agentv.user_code.javascript.host import JavaScriptHost


class SystemClock:
    """The system clock."""

    monotonic = staticmethod(time.monotonic)
    """Seconds from some fixed point. A static method for speed, as it is called eight times per trial."""

    def utc(self) -> datetime:
        """Return the current date and time in UTC."""
        return datetime.now(UTC)


class Answers(Struct, frozen=True):
    """Where a run stores answers, and whether it may make calls.

    Attributes:
        no_target, no_judge: failures for calls without a stored answer, of targets, and of judges and embedders;
            None: the calls are made.
        works: stored work of the agents that gave the answers.
        spending: log of the cost of agents' model calls; None: it is not logged.
        exchanges: recorded model calls of agents; None if they are neither recorded nor replayed.
    """

    store: AnswerLookup
    no_target: Unanswered | None = None
    no_judge: Unanswered | None = None
    works: WorkArchive | None = None
    spending: SpendingLog | None = None
    exchanges: ModelExchanges | None = None


class NoAnswers:
    """An `AnswerLookup` that stores and finds nothing."""

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Discard the answer."""

    def stored_answer(self, call: Call) -> None:
        """Return None."""


class WorkspaceSettings(Struct, frozen=True):
    """Directories of workspaces, and the paths that are hidden from agents.

    Attributes:
        directory: parent of the workspaces of running trials; empty: the system's temporary directory.
        kept_directory: parent of kept workspaces, created for the first of them.
        repositories: the cache of git repositories; empty: that of the user.
        private: absolute paths to hide from agents, such as the project and its runs, in addition to home directories
            and the paths that suites hide.
        redactor: removes secrets from kept workspaces.
    """

    directory: str = ""
    kept_directory: str = ""
    repositories: str = ""
    private: tuple[str, ...] = ()
    redactor: Redactor = field(default_factory=Redactor)

    @property
    def place(self) -> str:
        """The directory in which workspaces are created."""
        from tempfile import gettempdir  # imported only for workspaces

        return self.directory or gettempdir()


class Connections:
    """The run's `RunContext`: its targets and judges, each connected once and closed together.

    Args:
        workers: maximum number of concurrent calls to one endpoint.
        budget_limiter: limit of the calls' cost; None: there is no budget.
        answers: where answers are looked up and stored; None: nowhere.
        workspace_settings: returns the directories of workspaces; None: the defaults.
        debug: connect Python code to the terminal.
    """

    def __init__(
        self,
        workers: int = DEFAULT_WORKERS,
        budget_limiter: BudgetLimiter | None = None,
        answers: Answers | None = None,
        workspace_settings: Callable[[], WorkspaceSettings] | None = None,
        *,
        debug: bool = False,
    ) -> None:
        self.answers = answers or Answers(NoAnswers())
        self.store = self.answers.store
        self.unanswered = self.answers.no_target
        self.clock = SystemClock()
        self.imported = ImportedCode()
        self.executor = DaemonThreads(self.imported.note, debug=debug)
        self.throttle = CallThrottle(workers, budget_limiter=budget_limiter)
        self._javascript: dict[int, JavaScriptHost] = {}
        self._targets: dict[int, Target] = {}
        self._judges: dict[tuple[int, int], Judge] = {}
        self._embedders: dict[int, EmbeddingCache] = {}
        self._checks: dict[int, SuiteFiles | None] = {}
        self.workspace_settings = workspace_settings or WorkspaceSettings
        self._kept: list[object] = []  # keeps specs and suites alive, as their ids are keys

    @property
    def kept_works(self) -> WorkArchive | None:
        """Stored work of the agents that gave the answers."""
        return self.answers.works

    @cached_property
    def works(self) -> TrialWorks:
        """Workspaces and tools of trials; loaded when the first trial needs them."""
        works: TrialWorks = loaded(PORTS, "TrialWorks")(self)
        return works

    def target(self, spec: TargetSpec) -> Target:
        """Return the connected target of a spec, called through the run's throttle."""
        found = self._targets.get(id(spec))
        if found is None:
            self._kept.append(spec)
            connected = unchanged(connected_target(spec, self.executor), spec, self.imported, code_only=True)
            found = self._targets[id(spec)] = self.throttle.wrap(spec, connected)
        return found

    def javascript(self, suite: Suite) -> JavaScriptHost:
        """Return the JavaScript runtime for a suite; suites with the same environment share a process."""
        from agentv.user_code.javascript.host import JavaScriptHost  # few suites have such files

        found = self._javascript.get(id(suite))
        if found is None:
            same = (one for one in self._javascript.values() if one.env == suite.env)
            self._kept.append(suite)
            found = self._javascript[id(suite)] = next(same, None) or JavaScriptHost(suite.env)
        return found

    def judge(self, spec: TargetSpec, suite: Suite) -> Judge:
        """Return the judge that calls a spec's target, in the environment of a suite."""
        key = (id(spec), id(suite))
        found = self._judges.get(key)
        if found is None:
            self._kept += (spec, suite)
            found = self.judge_through(
                lambda target: RecordedTarget(target, spec, self.store, self.answers.no_judge), spec, suite
            )
            self._judges[key] = found
        return found

    def judge_through(self, through: Callable[[Target], Target], spec: TargetSpec, suite: Suite) -> Judge:
        """Return a judge that calls a spec's target, wrapped by `through` to look up and store its answers."""
        from agentv.judge.target import TargetJudge

        checked = unchanged(self.target(spec), spec, self.imported, code_only=False)
        env = {**suite.env, **spec.env}
        timeout_s = spec.timeout_s or (AGENT_JUDGE_TIMEOUT_S if spec.is_agent else JUDGE_TIMEOUT_S)
        target = through(checked)
        return TargetJudge(target, spec.name, model=spec.model, timeout_s=timeout_s, env=env, own_env=spec.env)

    def embedder(self, spec: TargetSpec) -> Embedder:
        """Return the embedder of a spec's target, which embeds each text once.

        Raises:
            LookupError: the target cannot embed, which loading should have reported.
        """
        from agentv.engine.calls.embeddings import EmbeddingCache, RecordedEmbedder

        found = self._embedders.get(id(spec))
        if found is None:
            target = self.target(spec)
            if not isinstance(target, Embedder):
                raise LookupError(f"'{spec.name}' does not compute embeddings")
            recorded = RecordedEmbedder(target, spec, self.store, self.answers.no_judge)
            found = self._embedders[id(spec)] = EmbeddingCache(recorded)
        return found

    def check(self, suite: Suite) -> GraderCheck | None:
        """Return the check whether a suite's entries may still grade, or None if they use no file or program."""
        key = id(suite)
        if key not in self._checks:
            self._kept.append(suite)
            files = suite.graders
            if files is None or not (files.digests or files.starts_programs):
                self._checks[key] = None
            else:
                self._checks[key] = SuiteFiles(files, self.imported, directories_of_targets(suite))
        return self._checks[key]

    def notes(self) -> tuple[str, ...]:
        """Return notes about changed files, model calls outside the gateway, and failures after the last trial."""
        found = (note for one in self._checks.values() if one is not None for note in one.notes())
        # agents whose model calls could go through the gateway, but do not
        outside_gateway = (
            f"'{spec.name}': no API key is known, so its model calls do not pass the gateway"
            for spec in self._kept
            if isinstance(spec, TargetSpec) and spec.upstream is None
            if getattr(spec.settings, "model_protocol", None) is not None
            if getattr(spec.settings, "gateway", None) is not False
        )
        failures = self.works.failures if "works" in vars(self) else ()
        failed = (f"after the last trial: {failure.message} [{failure.code}]" for failure in failures)
        return tuple(dict.fromkeys((*found, *outside_gateway, *failed)))

    async def close(self) -> None:
        """Close every connection, process and thread."""
        for target in self._targets.values():
            await target.close()
        if "works" in vars(self):
            await self.works.close()
        for javascript in self._javascript.values():
            await javascript.close()
        await self.executor.aclose()


def callable_target(function: Callable[..., Any]) -> TargetSpec:
    """Return the spec of a target that calls a Python function."""
    from agentv.targets.python import GivenFunction

    name = getattr(function, "__name__", type(function).__name__)
    settings = GivenFunction(function)
    return TargetSpec(name, "python", settings, public={"provider": "python", "function": name})


def redactor_for(suites: tuple[Suite, ...]) -> Redactor:
    """Return the redactor of all secrets of the suites."""
    return _redactor(frozenset(secret for suite in suites for secret in suite.secrets))


@lru_cache(maxsize=4)
def _redactor(secrets: frozenset[str]) -> Redactor:
    """Return a cached redactor: making one for fifty secrets takes some milliseconds."""
    return Redactor(secrets)


RAISED = "target-raised"


def connected_target(spec: TargetSpec, executor: Executor) -> Target:
    """Connect the target of a spec. A plugin's target is wrapped, so that its errors become failures."""
    settings = cast("Connectable", spec.settings)
    if not spec.plugin:
        return settings.connect(spec, executor)
    what = f"target '{spec.name}' of {spec.plugin}"
    try:
        with foreign_code(RAISED, what):
            target: object = settings.connect(spec, executor)
    except ForeignError as error:
        return UnconnectedTarget(error.failure)
    if not callable(getattr(target, "answer", None)) or not callable(getattr(target, "close", None)):
        why = f"{what}: connect() must return what has answer() and close(), and returned {type(target).__name__}"
        return UnconnectedTarget(Failure(RAISED, why))
    kind = GuardedEmbedder if isinstance(target, Embedder) else GuardedTarget
    return kind(target, what, executor)  # type: ignore[arg-type]  # it has both methods


class UnconnectedTarget:
    """A target that could not be connected: every call returns the reason."""

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    def answer(self, request: TargetRequest) -> Failure:  # noqa: ARG002
        """Return the reason why the target cannot be called."""
        return self._failure

    async def close(self) -> None:
        """Do nothing: nothing is open."""


class GuardedTarget:
    """A plugin's target. A plain `answer` runs on a thread, an async one on the event loop, which it must not block."""

    def __init__(self, target: Target, what: str, executor: Executor) -> None:
        self._target = target
        self._what = what
        self._executor = executor
        self._is_coroutine = inspect.iscoroutinefunction(target.answer)

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Return the plugin's answer, or a Failure if it raises or returns another type."""
        try:
            given = (
                self._call(request) if self._is_coroutine else await self._executor.call(partial(self._call, request))
            )
            with foreign_code(RAISED, self._what):
                found: object = await given if inspect.isawaitable(given) else given
        except ForeignError as error:
            return error.failure
        if isinstance(found, TargetResponse):
            response = checked(found)
            if isinstance(response, Failure):
                return Failure(response.code, f"{self._what}: {response.message}")
            return response
        if isinstance(found, Failure):
            return found
        returned = f"and returned {type(found).__name__}"
        return Failure("bad-answer", f"{self._what}: answer() must return a TargetResponse or a Failure, {returned}")

    def _call(self, request: TargetRequest) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        with foreign_code(RAISED, self._what):
            return self._target.answer(request)

    async def close(self) -> None:
        """Release the resources of the target. An exception is ignored, as it affects no answer."""
        try:
            with foreign_code(RAISED, self._what):
                await self._target.close()
        except ForeignError:
            return


class GuardedEmbedder(GuardedTarget):
    """A plugin's target that also turns texts into vectors."""

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """Return the vectors of the texts, or a Failure if the plugin raises or returns another type."""
        assert isinstance(self._target, Embedder)  # noqa: S101  # connected_target checks it
        try:
            with foreign_code(RAISED, self._what):
                found: object = await self._target.embed(texts, timeout_s)
        except ForeignError as error:
            return error.failure
        if isinstance(found, Embeddings | Failure):
            return found
        returned = f"and returned {type(found).__name__}"
        return Failure("bad-answer", f"{self._what}: embed() must return Embeddings or a Failure, {returned}")
