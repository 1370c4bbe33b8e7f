"""What a case takes: cost, tokens, turns and time; and the paired difference of two sides of a comparison."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from msgspec import Struct

Resource = Literal["cost_usd", "tokens", "turns", "duration_ms"]
RESOURCES: tuple[Resource, ...] = get_args(Resource)


class CaseUsage(NamedTuple):
    """Mean of a case's graded samples. None: unknown for one of them; a cost that is not known is never 0."""

    cost_usd: float | None = None
    tokens: float | None = None
    turns: float | None = None
    duration_ms: float | None = None


class UsageDifference(Struct, frozen=True):
    """Paired difference of one resource.

    Attributes:
        cases: number of compared cases in which it is known on both sides.
        unknown: number of the others.
        before, after: mean of these cases, of base and candidate; None: it is known in none.
        delta: `after` less `before`.
        interval: of `delta`, at `confidence`, by Student's t over independent clusters; None: there is only one.
    """

    resource: Resource
    cases: int
    unknown: int
    before: float | None = None
    after: float | None = None
    delta: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float = 0.95
