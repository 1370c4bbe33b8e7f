"""Serialization of trials and results.

Objects that many trials share, suites and targets, are sent to a worker once and then named by number: a suite contains
the environment of its programs, and a worker must use one object for one suite. A result names its trial, and the
assertions in it, by position, since both sides have those.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from agentv.model.run.trial import Trial, TrialResult
from agentv.model.suite.suite import Rate, Suite, TargetSpec

Shared = Suite | TargetSpec


class NotSendableError(Exception):
    """An object cannot be serialized, such as a caller's function that contains an open file."""


@dataclass(frozen=True, slots=True)
class Packed:
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
            bare = self._own_share(shared) if isinstance(shared, TargetSpec) else _bare(shared)
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

    def _own_share(self, spec: TargetSpec) -> TargetSpec:
        """A target as one of several workers may ask it: they know nothing of each other's calls."""
        rate, number = spec.rate, self._workers
        if rate is None or number < 2:
            return replace(spec)
        parts = (each and each / number for each in (rate.requests_per_minute, rate.tokens_per_minute))
        return replace(spec, rate=Rate(*parts))


def _bare(suite: Suite) -> Suite:
    """A suite without what planning and reports alone need."""
    return replace(suite, cases=(), links={}, tally=None, files={}, generators=(), exam=None)


def unpacked(body: bytes, shared: Mapping[int, Shared]) -> Any:
    """Deserialize, given the suites and targets that arrived before."""
    return _unpickled(body, shared.__getitem__)


def packed_results(results: Sequence[TrialResult], trials: Sequence[Trial]) -> bytes:
    """Results as bytes; the trials are those that the job named, and its very objects."""
    places = {id(part): place for place, part in enumerate(_parts(trials))}
    return _pickled(tuple(results), lambda value: places.get(id(value)))


def unpacked_results(body: bytes, trials: Sequence[Trial]) -> tuple[TrialResult, ...]:
    """Deserialize the results of a job's trials."""
    parts = list(_parts(trials))
    found: tuple[TrialResult, ...] = _unpickled(body, parts.__getitem__)
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


def _unpickled(body: bytes, find: Callable[[int], object]) -> Any:
    return _Unpickler(io.BytesIO(body), find).load()
