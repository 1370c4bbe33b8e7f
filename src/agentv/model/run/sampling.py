"""Samples of a case that end once its pass rate is decided (`repeat: {max: N, until: decided}`)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

DEFAULT_ALPHA = 0.05

Why = Literal["above", "below", "gate", "errored", "undecided"]


class SamplingStop(Struct, frozen=True):
    """Why a case got no more samples; part of its last sample's row.

    Attributes:
        why: its pass rate is shown to be `above` or `below` the threshold; a required assertion failed (`gate`), or a
            sample `errored`, which no further sample can change; `undecided`: it had the maximum number of samples.
        samples: number of graded samples.
        passed: number of those that passed.
        low, high: anytime-valid bounds of the pass rate, each with confidence 1 − alpha.
    """

    why: Why
    samples: int
    passed: int
    low: float
    high: float

    @property
    def side(self) -> Literal["above", "below"] | None:
        """On which side of the threshold the samples show the rate; None where they do not."""
        return self.why if self.why == "above" or self.why == "below" else None  # noqa: PLR1714  # mypy reads it so


class EarlyCase(Struct, frozen=True):
    """A case that failed or was not decided, of those whose samples end where they are.

    Attributes:
        status: `passed` or `failed`.
        alpha: the chance, at most, with which each of the bounds in `stopped` is wrong.
        stopped: its samples, and bounds of its pass rate that hold although the samples ended where they did.
    """

    test_id: str
    suite: str
    target: str
    prompt_id: str | None
    status: Literal["passed", "failed"]
    alpha: float
    stopped: SamplingStop


class EarlyStops(Struct, frozen=True):
    """How the cases of a run ended whose samples end where they are decided.

    Attributes:
        alpha: the largest chance that one of them was decided wrongly; so of all `cases` a share of that at most is
            expected to be.
        decided: cases whose samples show on which side of the threshold the pass rate is, or that a gate failed.
        undecided: cases that had all their samples and are judged by the share that passed.
        samples: that were run, of these and of errored cases.
        spared: samples that were not needed.
        cases: that were sampled, decided or not, errored ones included.
        confirmed: of those that the samples decided, how many hold together: a share of alpha of them at most is
            expected to be decided wrongly (`stats.discoveries`).
        by_gate: of those decided, how many failed a required assertion, which is no estimate.
        by_case: those that failed, then the undecided that passed, the lowest share first; a bounded number.
        omitted: how many more there are.
    """

    alpha: float
    decided: int
    undecided: int
    samples: int
    spared: int
    by_case: tuple[EarlyCase, ...] = ()
    omitted: int = 0
    cases: int = 0
    confirmed: int = 0
    by_gate: int = 0
