"""The composition root: the only place that joins siblings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agentv.assertions.catalogue import registry as assertion_registry
from agentv.engine.embeddings import KeptEmbedder, Remembering
from agentv.engine.kept import KeptTarget, Unanswered
from agentv.engine.services import World
from agentv.engine.traffic import Traffic
from agentv.foreign.threads import DaemonThreads
from agentv.model.redaction import Redactor
from agentv.model.repository import Checkout, RepositoryFile, Unavailable
from agentv.model.response import Failure
from agentv.model.suite import DEFAULT_WORKERS, JUDGE_TIMEOUT_S, Suite, TargetSpec
from agentv.model.values import JsonObject
from agentv.ports import Embedder, Judge, Keeper, Target
from agentv.registry.types import Checkouts, CustomTypes, Discovered
from agentv.spec.files import nearest_in_agentv
from agentv.spec.suite import Registries
from agentv.targets.catalogue import registry as target_registry

if TYPE_CHECKING:
    from agentv.assertions.javascript.host import JavaScriptHost
    from agentv.engine.purse import Purse
    from agentv.foreign.repositories import Repositories


class SystemClock:
    """The real time."""

    def monotonic(self) -> float:
        """Seconds from some fixed point."""
        return time.monotonic()

    def utc(self) -> datetime:
        """The date and time now, in UTC."""
        return datetime.now(UTC)


def registries() -> Registries:
    """All that names in authored files can mean."""
    return Registries(assertion_registry(), target_registry(), _custom_types(), _checkouts())


def _custom_types() -> CustomTypes:
    found: dict[tuple[str, str], Discovered] = {}

    def discover(directory: str, root: str) -> Discovered:
        if (directory, root) not in found:
            found[directory, root] = _discovered(directory, root)
        return found[directory, root]

    return discover


def _discovered(directory: str, root: str) -> Discovered:
    folder, tried = nearest_in_agentv(directory, root, "assertions")
    if folder is None:
        return Discovered({}, tuple(tried))
    from agentv.assertions.custom import discover  # only a project with assertions of its own pays for this

    return discover(directory, root)


def _checkouts() -> Checkouts:
    kept: list[Repositories] = []

    def checkout(wanted: RepositoryFile, env: Mapping[str, str]) -> Checkout | Unavailable:
        if not kept:
            from agentv.foreign.repositories import Repositories  # only a project that names such files pays for this

            kept.append(Repositories())
        return kept[0].checkout(wanted, env)

    return checkout


class LazyJavaScript:
    """The JavaScript runtime, started when the first assertion needs it."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self.env = env
        self._host: JavaScriptHost | None = None

    async def grade(self, file: str, payload: JsonObject, timeout_s: float) -> JsonObject | Failure:
        """Have a file grade a payload."""
        if self._host is None:
            from agentv.assertions.javascript.host import JavaScriptHost

            self._host = JavaScriptHost(self.env)
        return await self._host.grade(file, payload, timeout_s)

    async def close(self) -> None:
        """End the process, if one was started."""
        if self._host is not None:
            await self._host.close()  # and it stays: a late grading is refused, not served by a new process


@dataclass(frozen=True, slots=True)
class Answers:
    """Where the answers of a run are kept, and whether anybody is asked for more.

    Attributes:
        no_target, no_judge: what calls of targets, and those of judges and embedders, come to where no answer is kept;
            None: they are made.
    """

    store: Keeper
    no_target: Unanswered | None = None
    no_judge: Unanswered | None = None


class Connections:
    """The targets and judges of one run, each connected once; closed together.

    Args:
        workers: calls that one endpoint gets at once, at most.
        purse: what the calls may spend; None: there is no budget.
    """

    def __init__(self, workers: int = DEFAULT_WORKERS, purse: Purse | None = None) -> None:
        self.executor = DaemonThreads()
        self.traffic = Traffic(workers, purse=purse)
        self._javascript: dict[int, LazyJavaScript] = {}
        self._targets: dict[int, Target] = {}
        self._judges: dict[tuple[int, int], Judge] = {}
        self._embedders: dict[int, Remembering] = {}
        self._kept: list[object] = []  # alive, so that their ids stay their own

    def target(self, spec: TargetSpec) -> Target:
        """The connected target of a spec, asked through the run's traffic."""
        found = self._targets.get(id(spec))
        if found is None:
            self._kept.append(spec)
            connected = spec.settings.connect(spec, self.executor)
            found = self._targets[id(spec)] = self.traffic.through(spec, connected)
        return found

    def javascript(self, suite: Suite) -> LazyJavaScript:
        """The JavaScript runtime in the environment of a suite: suites of one environment share a process."""
        found = self._javascript.get(id(suite))
        if found is None:
            same = (one for one in self._javascript.values() if one.env == suite.env)
            self._kept.append(suite)
            found = self._javascript[id(suite)] = next(same, None) or LazyJavaScript(suite.env)
        return found

    def judge(self, spec: TargetSpec, suite: Suite, answers: Answers) -> Judge:
        """The judge that asks a spec's target, in the environment of a suite."""
        key = (id(spec), id(suite))
        found = self._judges.get(key)
        if found is None:
            from agentv.judge.target import TargetJudge

            self._kept += (spec, suite)
            env = {**suite.env, **spec.env}
            asked = KeptTarget(self.target(spec), spec, answers.store, answers.no_judge)
            found = TargetJudge(asked, spec.name, timeout_s=spec.timeout_s or JUDGE_TIMEOUT_S, env=env)
            self._judges[key] = found
        return found

    def embedder(self, spec: TargetSpec, answers: Answers) -> Embedder:
        """What embeds texts through a spec's target, each text once.

        Raises:
            LookupError: it does not, which loading should have found.
        """
        found = self._embedders.get(id(spec))
        if found is None:
            target = self.target(spec)
            if not isinstance(target, Embedder):
                raise LookupError(f"'{spec.name}' does not embed")
            kept = KeptEmbedder(target, spec, answers.store, answers.no_judge)
            found = self._embedders[id(spec)] = Remembering(kept)
        return found

    def world(self, answers: Answers) -> World:
        """What the engine reaches."""

        def judge(spec: TargetSpec, suite: Suite) -> Judge:
            return self.judge(spec, suite, answers)

        def embedder(spec: TargetSpec) -> Embedder:
            return self.embedder(spec, answers)

        ports = (self.target, judge, self.executor, self.javascript, answers.store, SystemClock())
        return World(*ports, traffic=self.traffic, embedder=embedder, unanswered=answers.no_target)

    async def close(self) -> None:
        """Let go of every connection, process and thread."""
        for target in self._targets.values():
            await target.close()
        for javascript in self._javascript.values():
            await javascript.close()
        await self.executor.aclose()


def callable_target(function: Callable[..., Any], *, on_our_loop: bool = False) -> TargetSpec:
    """A target that a function of the caller's is; `on_our_loop`: it belongs to the loop that the run is on."""
    from agentv.targets.python import GivenFunction

    name = getattr(function, "__name__", type(function).__name__)
    settings = GivenFunction(function, on_our_loop)
    return TargetSpec(name, "python", settings, public={"provider": "python", "function": name})


def redactor_for(suites: tuple[Suite, ...]) -> Redactor:
    """What takes the secrets of the suites out of all that is written."""
    return Redactor(secret for suite in suites for secret in suite.secrets)
