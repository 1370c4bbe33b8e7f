"""What all calls of one target share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from agentv.model.suite import TargetSpec

if TYPE_CHECKING:
    from agentv.engine.gate import Gate
    from agentv.engine.naps import Naps
    from agentv.engine.purse import Account
    from agentv.engine.rate import Meter
    from agentv.engine.stops import Stop
    from agentv.model.response import Failure


class Line(NamedTuple):
    """The way to one target.

    Attributes:
        gate: where its calls wait; None: a target on this machine, which needs no waiting.
        networked: it is asked over a network, so that an attempt that takes too long may be a lost one.
        meter: of its own rate; None: it has none.
        stop: whether it is stopped.
        chance: gives a random number, 0..1.
        tell: takes the failure that has stopped it.
        answers, vectors: what its calls may spend; None: there is no budget, or they cost nothing.
    """

    spec: TargetSpec
    gate: Gate | None
    networked: bool
    meter: Meter | None
    stop: Stop
    naps: Naps
    chance: Callable[[], float]
    tell: Callable[[TargetSpec, Failure], None]
    answers: Account | None = None
    vectors: Account | None = None
