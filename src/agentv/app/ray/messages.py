"""Messages between the run and the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from agentv.lazy_dataclass import dataclass
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.ports import Call


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker receives when it starts.

    Attributes:
        at_once: calls that one endpoint gets at once from this worker, at most.
        looks: answers may be there already, so that each call is looked up at home first.
        no_target, no_judge: what targets, and judges and embedders, have no answer to is not asked.
    """

    at_once: int
    looks: bool = False
    no_target: bool = False
    no_judge: bool = False


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a worker says of itself once it has started.

    Attributes:
        node: the name or address of its machine.
        version: of the agentv that is installed there.
        missing: files that it needs and that are not there.
        other: those that hold something else there.
        node_id: the cluster's own name of the machine; several may run on one host.
    """

    node: str
    version: str
    missing: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    node_id: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is to do: one trial, or the comparison of several that are answered.

    Attributes:
        known: key of a call → its answer, that a worker which was lost had received.
        answered: to `compare`: the answer of each trial and the milliseconds that it took, or its errored result.
    """

    what: Literal["run", "answer", "compare"]
    trials: tuple[Trial, ...]
    known: Mapping[str, TargetResponse] = field(default_factory=dict)
    answered: tuple[tuple[TargetResponse, float] | TrialResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Received:
    """A call was answered: to be kept before anything else."""

    call: Call
    answer: TargetResponse


@dataclass(frozen=True, slots=True)
class Wanted:
    """Asks whether a call has an answer already. The reply carries the same number."""

    number: int
    call: Call


@dataclass(frozen=True, slots=True)
class LookupReply:
    """The answer that is there; without one, why nobody is to be asked for one."""

    answer: TargetResponse | None
    no_target: Failure | None = None
    no_judge: Failure | None = None


@dataclass(frozen=True, slots=True)
class StoppedTarget:
    """A target can answer nobody any more; `spec` is its number among the shared objects."""

    spec: int
    failure: CallFailure


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """The answer to the trial of a job that asks for no more."""

    answer: TargetResponse
    measured_ms: float


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a job's trials, packed."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A worker cannot make the job out of its bytes, since a module is missing there."""

    why: str


WorkerMessage: TypeAlias = Received | Wanted | StoppedTarget | TrialAnswer | Results | Unreadable
"""From a worker to us."""
