"""The composition root: the only place that joins siblings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agentv.assertions.catalogue import registry as assertion_registry
from agentv.engine.services import World
from agentv.foreign.threads import DaemonThreads
from agentv.model.redaction import Redactor
from agentv.model.repository import Checkout, RepositoryFile, Unavailable
from agentv.model.response import Failure
from agentv.model.suite import JUDGE_TIMEOUT_S, Suite, TargetSpec
from agentv.model.values import JsonObject
from agentv.ports import Judge, Store, Target
from agentv.registry.types import Checkouts, CustomTypes, Discovered
from agentv.spec.files import nearest_in_agentv
from agentv.spec.suite import Registries
from agentv.targets.catalogue import registry as target_registry

if TYPE_CHECKING:
    from agentv.assertions.javascript.host import JavaScriptHost
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
        self._env = env
        self._host: JavaScriptHost | None = None

    async def grade(self, file: str, payload: JsonObject, timeout_s: float) -> JsonObject | Failure:
        """Have a file grade a payload."""
        if self._host is None:
            from agentv.assertions.javascript.host import JavaScriptHost

            self._host = JavaScriptHost(self._env)
        return await self._host.grade(file, payload, timeout_s)

    async def close(self) -> None:
        """End the process, if one was started."""
        if self._host is not None:
            await self._host.close()  # and it stays: a late grading is refused, not served by a new process


class Connections:
    """The targets and judges of one run, each connected once; closed together."""

    def __init__(self, suites: tuple[Suite, ...]) -> None:
        self.executor = DaemonThreads()
        self.javascript = LazyJavaScript(suites[0].env if suites else None)
        self._targets: dict[int, Target] = {}
        self._judges: dict[int, Judge] = {}
        self._specs: list[TargetSpec] = []
        self._suites = suites

    def target(self, spec: TargetSpec) -> Target:
        """The connected target of a spec."""
        found = self._targets.get(id(spec))
        if found is None:
            self._specs.append(spec)  # kept alive, so that its id stays its own
            found = self._targets[id(spec)] = spec.settings.connect(spec, self.executor)
        return found

    def judge(self, spec: TargetSpec) -> Judge:
        """The judge that asks a spec's target."""
        found = self._judges.get(id(spec))
        if found is None:
            from agentv.judge.target import TargetJudge

            env = {**(self._suites[0].env if self._suites else {}), **spec.env}
            found = TargetJudge(self.target(spec), spec.name, timeout_s=spec.timeout_s or JUDGE_TIMEOUT_S, env=env)
            self._judges[id(spec)] = found
        return found

    def world(self, store: Store) -> World:
        """What the engine reaches."""
        return World(self.target, self.judge, self.executor, self.javascript, store, SystemClock())

    async def close(self) -> None:
        """Let go of every connection, process and thread."""
        for target in self._targets.values():
            await target.close()
        await self.javascript.close()
        self.executor.close()


def callable_target(function: Callable[..., Any]) -> TargetSpec:
    """A target that a function of the caller's is."""
    from agentv.targets.python import GivenFunction

    name = getattr(function, "__name__", type(function).__name__)
    return TargetSpec(name, "python", GivenFunction(function), public={"provider": "python", "function": name})


def redactor_for(suites: tuple[Suite, ...]) -> Redactor:
    """What takes the secrets of the suites out of all that is written."""
    return Redactor(secret for suite in suites for secret in suite.secrets)
