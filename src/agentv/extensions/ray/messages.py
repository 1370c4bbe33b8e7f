"""Messages between the driver and the workers of a Ray cluster, and the serialization of trials and results.

Suites and targets, which many trials share, are sent to a worker once and then referenced by number: a suite contains
the environment of its programs, and a worker must use one object per suite. A result references its trial, and the
trial's assertions, by position, since both sides have them.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.code.fingerprints import digest_of, files_behind
from agentv.engine.plan import Plan
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.suite.suite import Rate, Suite, TargetSpec
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.ports import Call


class WorkerConfig(Struct, frozen=True):
    """Configuration that a worker receives when it starts.

    Attributes:
        at_once: maximum number of concurrent calls to one endpoint from this worker.
        looks: stored answers may exist, so each call is looked up in the driver's store before it is made.
        no_target, no_judge: failures for calls without a stored answer, of targets, and of judges and embedders.
    """

    at_once: int
    looks: bool = False
    no_target: bool = False
    no_judge: bool = False


class Readiness(Struct, frozen=True):
    """State that a worker reports after its start.

    Attributes:
        node: the name or address of its machine.
        version: version of the installed agentv.
        missing: needed files that are missing there.
        other: files with different content there.
        node_id: Ray's id of the node; several nodes can run on one host.
    """

    node: str
    version: str
    missing: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    node_id: str = ""


class Job(Struct, frozen=True):
    """Job of a worker: one trial, or the comparison of several answered ones.

    Attributes:
        known: key of a call → its answer, which a lost worker had received.
        answered: for `compare`: the answer of each trial and its duration in milliseconds, or its errored result.
    """

    what: Literal["run", "answer", "compare"]
    trials: tuple[Trial, ...]
    known: Mapping[str, TargetResponse] = field(default_factory=dict)
    answered: tuple[tuple[TargetResponse, float] | TrialResult, ...] = ()


class Received(Struct, frozen=True):
    """A call was answered. The driver stores the answer at once."""

    call: Call
    answer: TargetResponse


class Wanted(Struct, frozen=True):
    """Asks whether there is a stored answer to a call. The reply has the same number."""

    number: int
    call: Call


class LookupReply(Struct, frozen=True):
    """A stored answer; without one, the reasons why no call may be made."""

    answer: TargetResponse | None
    no_target: Failure | None = None
    no_judge: Failure | None = None


class StoppedTarget(Struct, frozen=True):
    """A target that refuses all calls; `spec` is its number among the shared objects."""

    spec: int
    failure: CallFailure


class TrialAnswer(Struct, frozen=True):
    """The answer to the trial of an `answer` job."""

    answer: TargetResponse
    measured_ms: float


class Results(Struct, frozen=True):
    """The results of a job's trials, packed."""

    body: bytes


class Unreadable(Struct, frozen=True):
    """A worker cannot deserialize the job, since a module is missing there."""

    why: str


WorkerMessage: TypeAlias = Received | Wanted | StoppedTarget | TrialAnswer | Results | Unreadable
"""Message from a worker to the driver."""


Shared = Suite | TargetSpec


class NotSendableError(Exception):
    """An object cannot be serialized, such as a caller's function that contains an open file."""


class Packed(Struct, frozen=True):
    """A serialized object, and the numbers of the shared objects that must arrive before it."""

    body: bytes
    needs: tuple[int, ...] = ()


class SharedObjects:
    """Suites and targets, which messages reference by number.

    Args:
        workers: number of workers that share the rate limit of a target.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._objects: list[Shared] = []  # kept alive, so that their ids stay unique
        self._numbers: dict[int, int] = {}
        self._packed: dict[int, Packed] = {}

    def number(self, shared: Shared) -> int:
        """Return the number of a suite or a target, assigned on first use."""
        found = self._numbers.get(id(shared))
        if found is None:
            found = self._numbers[id(shared)] = len(self._objects)
            self._objects.append(shared)
        return found

    def resolve(self, number: int) -> Shared:
        """Return the object with this number."""
        return self._objects[number]

    def piece(self, number: int) -> Packed:
        """Serialize a suite or a target, without what workers do not need."""
        found = self._packed.get(number)
        if found is None:
            shared = self._objects[number]
            bare: Shared = replace(shared)
            if isinstance(shared, Suite):  # without what only planning and reports need
                bare = replace(shared, cases=(), links={}, tally=None, files={}, generators=(), exam=None)
            elif shared.rate is not None:
                # each worker gets its share of the rate, since workers do not know each other's calls
                rates = (shared.rate.requests_per_minute, shared.rate.tokens_per_minute)
                bare = replace(shared, rate=Rate(*(each and each / self._workers for each in rates)))
            found = self._packed[number] = self.pack(bare)
        return found

    def pack(self, whole: object) -> Packed:
        """Serialize an object, in which suites and targets are replaced by numbers.

        Raises:
            NotSendableError: it cannot be serialized.
        """
        needs: dict[int, None] = {}

        def name(value: object) -> int | None:
            if value is whole or not isinstance(value, Suite | TargetSpec):
                return None
            number = self.number(value)
            needs[number] = None
            return number

        return Packed(_pickled(whole, name), tuple(needs))


def packed_results(results: Sequence[TrialResult], trials: Sequence[Trial]) -> bytes:
    """Serialize results. `trials` must be the very objects of the job, which are recognized by identity."""
    places = {id(part): place for place, part in enumerate(_parts(trials))}
    return _pickled(tuple(results), lambda value: places.get(id(value)))


def unpacked_results(body: bytes, trials: Sequence[Trial]) -> tuple[TrialResult, ...]:
    """Deserialize the results of a job's trials."""
    found: tuple[TrialResult, ...] = unpacked(body, list(_parts(trials)).__getitem__)
    return found


def _parts(trials: Iterable[Trial]) -> Iterator[object]:
    """Yield the objects that a result can reference, in the same order on both sides."""
    for trial in trials:
        yield trial
        yield from trial.case.all_assertions()


def _pickled(whole: object, name: Callable[[object], int | None]) -> bytes:
    from ray import cloudpickle  # can serialize functions that are in no module

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]  # the library has no types
        def persistent_id(self, value: object) -> int | None:
            return name(value)

    into = io.BytesIO()
    try:
        Pickler(into).dump(whole)
    except (TypeError, AttributeError, RecursionError, ValueError, pickle.PicklingError) as error:
        raise NotSendableError(str(error)) from error
    return into.getvalue()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, find: Callable[[int], object]) -> None:
        super().__init__(file)
        self._find = find

    def persistent_load(self, name: int) -> object:
        return self._find(name)


def unpacked(body: bytes, find: Callable[[int], object]) -> Any:
    """Deserialize a message.

    Args:
        body: the message.
        find: returns the referenced object with a number.
    """
    return _Unpickler(io.BytesIO(body), find).load()


CHECKED_TRIALS = 10_000
"""Number of trials whose files are checked before the run; later ones are assumed to need the same files."""


def needed_files(plan: Plan) -> dict[str, str]:
    """Return path → sha256 of the files that the trials of a plan need."""
    found: dict[str, None] = {}
    for suite in plan.suites:  # targets that any trial may call; `_files_of_trial` adds those of a case
        judges = (*suite.judges.values(), suite.judge, suite.forced_judge, suite.default_judge)
        found |= dict.fromkeys(_files_of_targets(*suite.targets, *judges))
    for trial in islice(plan, CHECKED_TRIALS):
        found |= dict.fromkeys(_files_of_trial(trial))
    return {path: digest for path in found if (digest := digest_of(path)) is not None}


def compare_files(files: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files that are missing on this machine, and those with different content."""
    here = {path: digest_of(path) for path in files}
    missing = tuple(path for path, digest in here.items() if digest is None)
    other = tuple(path for path, digest in here.items() if digest not in (None, files[path]))
    return missing, other


def _files_of_targets(*specs: TargetSpec | None) -> Iterator[str]:
    for spec in specs:
        if spec is not None:
            yield from files_behind(spec.settings, spec.search)


def _files_of_trial(trial: Trial) -> Iterator[str]:
    yield from _files_of_targets(trial.target, trial.case.judge)
    graders = trial.suite.graders
    search = None if graders is None else graders.search
    for entry in trial.case.all_assertions():
        yield from files_behind(entry.assertion, search)
        if entry.settings.transform is not None:
            yield from files_behind(entry.settings, search)
