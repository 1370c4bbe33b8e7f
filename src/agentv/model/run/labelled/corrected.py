"""Pass rates of a run as people would give them, by labels of some of its answers."""

from __future__ import annotations

from msgspec import Struct

from agentv.model.run.group_totals import Interval


class CorrectedRate(Struct, frozen=True):
    """A pass rate by a judge, and what labels make of it.

    Attributes:
        by_judge: share that passes by the judge's verdicts.
        rate: share that people would pass.
        interval: its 95 % interval.
        labels: labelled answers that it is of.
        transferred: whether answers of other runs were labelled, so that it assumes the same errors here as there.
    """

    by_judge: float
    rate: float
    interval: Interval
    labels: int
    transferred: bool = False


class AssertionRate(Struct, frozen=True):
    """How often a judge passes the answers by one assertion. `corrected` is None without labels that count."""

    assertion: str
    judge: str
    model: str
    by_judge: float
    corrected: CorrectedRate | None = None


class CorrectedRates(Struct, frozen=True):
    """What labels say of the pass rates of a run. Computed for each view, since labels are given after a run.

    Attributes:
        run: of judged samples, by their verdicts; None if it cannot be computed.
        reason: why it cannot be computed; also None if no answer is labelled.
        assertions: of each assertion that a judge grades.
        unchecked: names of judges without any label that counts.
        outdated: those among them with labels for another model, prompt or rubric.
    """

    run: CorrectedRate | None = None
    reason: str | None = None
    assertions: tuple[AssertionRate, ...] = ()
    unchecked: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()
