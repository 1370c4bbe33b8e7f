"""What the run and the workers of a Ray cluster send each other, and how trials and results become bytes.

Objects that many trials share, suites and targets, are sent to a worker once and then named by number: a suite contains
the environment of its programs, and a worker must use one object for one suite. A result names its trial, and the
assertions in it, by position, since both sides have those.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.code.fingerprints import files_behind
from agentv.engine.plan import Plan
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.suite.suite import Rate, Suite, TargetSpec
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.ports import Call


class WorkerConfig(Struct, frozen=True):
    """Configuration that a worker receives when it starts.

    Attributes:
        at_once: maximum number of concurrent calls to one endpoint from this worker.
        looks: stored answers may exist, so each call is looked up on the first machine before it is made.
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
        version: of the installed agentv.
        missing: needed files that are missing there.
        other: files with different content there.
        node_id: the cluster's id of the machine; several may run on one host.
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
    """A call was answered: to be kept before anything else."""

    call: Call
    answer: TargetResponse


class Wanted(Struct, frozen=True):
    """Asks whether a call has an answer already. The reply carries the same number."""

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
    """A worker cannot make the job out of its bytes, since a module is missing there."""

    why: str


WorkerMessage: TypeAlias = Received | Wanted | StoppedTarget | TrialAnswer | Results | Unreadable
"""From a worker to us."""


Shared = Suite | TargetSpec


class NotSendableError(Exception):
    """An object cannot be serialized, such as a caller's function that contains an open file."""


class Packed(Struct, frozen=True):
    """Bytes, and the numbers of what must have arrived before them."""

    body: bytes
    needs: tuple[int, ...] = ()


class SharedObjects:
    """Suites and targets by their numbers.

    Args:
        workers: how many share the rate of a target.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._things: list[Shared] = []  # alive, so that their ids stay their own
        self._numbers: dict[int, int] = {}
        self._packed: dict[int, Packed] = {}

    def number(self, shared: Shared) -> int:
        """The number of a suite or a target; a new one at its first sight."""
        found = self._numbers.get(id(shared))
        if found is None:
            found = self._numbers[id(shared)] = len(self._things)
            self._things.append(shared)
        return found

    def thing(self, number: int) -> Shared:
        """The object with this number."""
        return self._things[number]

    def piece(self, number: int) -> Packed:
        """A suite or a target as bytes."""
        found = self._packed.get(number)
        if found is None:
            shared = self._things[number]
            bare: Shared = replace(shared)
            if isinstance(shared, Suite):  # without what planning and reports alone need
                bare = replace(shared, cases=(), links={}, tally=None, files={}, generators=(), exam=None)
            elif shared.rate is not None:
                # as one of several workers may ask it: they know nothing of each other's calls
                rates = (shared.rate.requests_per_minute, shared.rate.tokens_per_minute)
                bare = replace(shared, rate=Rate(*(each and each / self._workers for each in rates)))
            found = self._packed[number] = self.pack(bare)
        return found

    def pack(self, whole: object) -> Packed:
        """Anything as bytes, in which suites and targets are numbers.

        Raises:
            NotSendableError: it has none.
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
    """Results as bytes; the trials are those that the job named, and its very objects."""
    places = {id(part): place for place, part in enumerate(_parts(trials))}
    return _pickled(tuple(results), lambda value: places.get(id(value)))


def unpacked_results(body: bytes, trials: Sequence[Trial]) -> tuple[TrialResult, ...]:
    """Deserialize the results of a job's trials."""
    found: tuple[TrialResult, ...] = unpacked(body, list(_parts(trials)).__getitem__)
    return found


def _parts(trials: Iterable[Trial]) -> Iterator[object]:
    """What a result refers to, in an order that is the same at both ends."""
    for trial in trials:
        yield trial
        yield from trial.case.all_assertions()


def _pickled(whole: object, name: Callable[[object], int | None]) -> bytes:
    from ray import cloudpickle  # which knows how to send functions that stand in no module

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
    """Deserialize.

    Args:
        body: of a message.
        find: by their numbers, the objects that arrived before.
    """
    return _Unpickler(io.BytesIO(body), find).load()


LOOKED_AT = 10_000
"""Trials whose files are looked for before the run begins; later ones of a file of a million cases name the same."""


def needed_files(plan: Plan) -> dict[str, str]:
    """Path → sha256 of what the trials of a plan need."""
    found: dict[str, None] = {}
    for suite in plan.suites:  # the targets that its trials may call; a case's own come with the trial
        judges = (*suite.judges.values(), suite.judge, suite.forced_judge, suite.default_judge)
        found |= dict.fromkeys(_of_targets(*suite.targets, *judges))
    for trial in islice(plan, LOOKED_AT):
        found |= dict.fromkeys(_of_trial(trial))
    return {path: digest for path in found if (digest := digest_of(path)) is not None}


def lacking(files: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files that are missing on this machine, and files with different content."""
    here = {path: digest_of(path) for path in files}
    missing = tuple(path for path, digest in here.items() if digest is None)
    other = tuple(path for path, digest in here.items() if digest not in (None, files[path]))
    return missing, other


def digest_of(path: str) -> str | None:
    """The sha256 of a file, or None if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _of_targets(*specs: TargetSpec | None) -> Iterator[str]:
    for spec in specs:
        if spec is not None:
            yield from files_behind(spec.settings, spec.search)


def _of_trial(trial: Trial) -> Iterator[str]:
    yield from _of_targets(trial.target, trial.case.judge)
    graders = trial.suite.graders
    search = None if graders is None else graders.search
    for entry in trial.case.all_assertions():
        yield from files_behind(entry.assertion, search)
        if entry.settings.transform is not None:
            yield from files_behind(entry.settings, search)
