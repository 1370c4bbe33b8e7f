"""The comparison with another run as the page shows it: the verdict and its basis, in the words of `agentv compare`."""

from __future__ import annotations

from dataclasses import dataclass

from agentv.model.values.values import JsonObject


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """The difference that the verdict is about, candidate less base, -1..1.

    Attributes:
        measure: such as `pass rate`.
        interval: None with too few cases.
        level: confidence of the interval, as text.
    """

    measure: str
    delta: float
    interval: tuple[float, float] | None
    level: str


@dataclass(frozen=True, slots=True)
class ShownComparison:
    """What a comparison came to.

    Attributes:
        sentence: what to do, for a reader in a hurry; empty if nothing was compared.
        verdict: one word or two, such as `better` or `inconclusive`; empty if the runs cannot be compared.
        finding: the verdict in one sentence with its certainty, or why there is none.
        basis: lines about the numbers that it is based on.
        notes: lines about warnings, and about cases that are not counted.
    """

    verdict: str
    finding: str
    difference: ShownDifference | None = None
    basis: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sentence: str = ""

    def as_json(self) -> JsonObject:
        """The comparison as data of the page."""
        found = self.difference
        difference: JsonObject | None = None
        if found is not None:
            interval = None if found.interval is None else list(found.interval)
            difference = {"measure": found.measure, "delta": found.delta, "interval": interval, "level": found.level}
        return {
            "sentence": self.sentence,
            "verdict": self.verdict,
            "finding": self.finding,
            "difference": difference,
            "basis": list(self.basis),
            "notes": list(self.notes),
        }
