"""Every call of a target goes through here: it waits for its turn, keeps its time, is made again where that may help.

Trials and judges that ask one endpoint share its gate (SPEC sections 10 and 12). What answers at once, such as `echo`,
takes the shortest way: nothing is waited for, measured or made.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from agentv.engine.attempts import Call, Line, Turn
from agentv.engine.gate import Gate, Visitor
from agentv.engine.naps import Naps
from agentv.engine.pace import Pace
from agentv.engine.rate import Meter, tokens_in
from agentv.engine.stops import Stops
from agentv.model.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.suite import DEFAULT_WORKERS, TargetSpec
from agentv.ports import Embedder, Target, TargetRequest


class Traffic:
    """What the calls of one run share.

    Attributes:
        stops: the targets that are stopped.
        stopped: those of them that nobody has told yet, with the reason.

    Args:
        workers: calls that one endpoint gets at once, at most.
        chance: gives random numbers, 0..1.
    """

    def __init__(self, workers: int = DEFAULT_WORKERS, chance: Callable[[], float] = random.random) -> None:
        self.stops = Stops()
        self.stopped: deque[tuple[str, Failure]] = deque()
        self._workers = workers
        self._chance = chance
        self._gates: dict[str, Gate] = {}
        self._own: list[Gate] = []
        self._naps = Naps()

    def through(self, spec: TargetSpec, target: Target) -> Target:
        """The target, asked through here. It is an `Embedder` if the target is one."""
        meter = Meter(spec.rate) if spec.rate is not None else None
        line = Line(spec, self._gate(spec, metered=meter is not None), self.stops.of(spec), self._naps, self._chance)
        paced = PacedEmbedder if isinstance(target, Embedder) else PacedTarget
        return paced(target, line, meter, self._tell)

    def interrupt(self) -> None:
        """Nobody waits for another attempt any more, nor for a place at a server."""
        self._naps.end()
        for gate in (*self._gates.values(), *self._own):
            gate.close()

    def _gate(self, spec: TargetSpec, *, metered: bool) -> Gate | None:
        endpoint = getattr(spec.settings, "endpoint", _nowhere)()
        if endpoint is None:
            if not metered:
                return None
            self._own.append(Gate(Pace(self._workers)))
            return self._own[-1]
        if endpoint not in self._gates:
            self._gates[endpoint] = Gate(Pace(self._workers))
        return self._gates[endpoint]

    def _tell(self, spec: TargetSpec, failure: Failure) -> None:
        self.stops.any = True
        self.stopped.append((spec.name, failure))


class PacedTarget:
    """A target that is asked through a `Traffic`.

    Attributes:
        wrapped: the target itself.
    """

    def __init__(
        self, wrapped: Target, line: Line, meter: Meter | None, tell: Callable[[TargetSpec, Failure], None]
    ) -> None:
        self.wrapped = wrapped
        self._line = line
        self._meter = meter
        self._tell = tell
        self._at_once = line.gate is None

    def answer(self, request: TargetRequest) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        """Ask, and ask again where that may help."""
        if not self._at_once or self._line.stop.failure is not None:
            return self._asked(request, None)
        given = self.wrapped.answer(request)
        if isinstance(given, TargetResponse):
            return given
        if isinstance(given, Failure) and not given.retryable and not isinstance(given, CallFailure):
            return given
        return self._asked(request, given)

    async def close(self) -> None:
        """Let go of what the target holds."""
        await self.wrapped.close()

    async def _asked(
        self, request: TargetRequest, first: TargetResponse | Failure | Awaitable[TargetResponse | Failure] | None
    ) -> TargetResponse | Failure:
        def ask(turn: Turn) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
            again = turn.number or turn.seconds != request.timeout_s
            attempt = request.attempt + turn.number
            return self.wrapped.answer(replace(request, attempt=attempt, timeout_s=turn.seconds) if again else request)

        call = Call(self._line, ask, request.timeout_s, self._visitor(request.prompt))
        found, took_s = await call.outcome(first)
        if isinstance(found, Failure):
            return self._failed(found)
        if self._at_once and not call.attempts:
            return found
        took_ms = found.duration_ms if found.duration_ms is not None else took_s * 1000
        return replace(found, duration_ms=took_ms, attempts=tuple(call.attempts))

    def _visitor(self, text: str) -> Visitor:
        return Visitor(tokens=tokens_in(text) if self._meter is not None else 0.0, meter=self._meter)

    def _failed(self, failure: Failure) -> Failure:
        line = self._line
        if line.stop.note(failure):
            self._tell(line.spec, failure)
            return failure
        stops = isinstance(failure, CallFailure) and failure.stops
        return (line.stop.failure_for(line.spec.name) if stops else None) or failure


class PacedEmbedder(PacedTarget):
    """A paced target that also turns texts into vectors."""

    wrapped: Target

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """The vectors of the texts, asked for again where that may help."""
        embedder = self.wrapped
        assert isinstance(embedder, Embedder)  # noqa: S101  # it was when this was made

        def ask(turn: Turn) -> Awaitable[Embeddings | Failure]:
            return embedder.embed(texts, turn.seconds)

        found, _ = await Call(self._line, ask, timeout_s, self._visitor("".join(texts))).outcome()
        return self._failed(found) if isinstance(found, Failure) else found


def _nowhere() -> None:
    """Settings that name no endpoint: those of a double in a test, or of a plugin from before there were any."""
