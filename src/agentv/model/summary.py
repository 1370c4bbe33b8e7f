"""Totals of a run. Always computed from its rows, so they cannot disagree with them (SPEC section 13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from agentv.model.budget import BudgetUse
from agentv.model.response import TokenUsage
from agentv.model.samples import Samples
from agentv.model.sampling import EarlyStops
from agentv.model.trial import SCHEMA_VERSION
from agentv.model.values import Json


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of each outcome."""

    total: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """The totals of one suite, target, prompt or tag; its attributes are as those of `Summary`."""

    cases: Counts
    pass_rate: float | None
    mean_score: float | None
    pass_rate_interval: tuple[float, float] | None = None
    interval_cases: int | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The totals of a run.

    Attributes:
        pass_rate: passed cases / judged cases (passed + failed); None where none was judged.
        pass_rate_interval: Wilson's 95 % interval of the pass rate, for as many cases as `interval_cases` says; None
            where none was judged.
        interval_cases: the judged cases, each counted once on however many targets and with however many prompts it was
            run: what ends alike on two targets is no second piece of evidence. None where none was judged.
        mean_score: mean over judged cases of their mean score; None where none was judged, and where samples of a case
            could end early, which makes its mean lean to the side on which it ended. So it is in each group.
        cost_usd, judge_cost_usd: US dollars; None where no call said its price.
        token_usage, judge_token_usage: of the targets, and apart from them of the judges.
        budget: what became of it; None: there was none.
        early_stops: how cases ended whose samples may end early; None: there are none.
        duration_ms: of all processes of the run together, without the time between them.
        processes: how many there were: 1, and one more each time that it was gone on with.
        unpriced_trials, judge_unpriced_trials: those whose calls told tokens and no price; no cost here counts them.
        samples: what the cases with several samples came to, without those whose samples may end early; None where
            there are none.
    """

    run_id: str
    cases: Counts
    trials: Counts
    pass_rate: float | None
    pass_rate_interval: tuple[float, float] | None
    mean_score: float | None
    cost_usd: float | None
    judge_cost_usd: float | None
    token_usage: TokenUsage | None
    duration_ms: float
    judge_token_usage: TokenUsage | None = None
    unpriced_trials: int = 0
    judge_unpriced_trials: int = 0
    processes: int = 1
    interval_cases: int | None = None
    by_suite: Mapping[str, Group] = field(default_factory=dict)
    by_target: Mapping[str, Group] = field(default_factory=dict)
    by_prompt: Mapping[str, Group] = field(default_factory=dict)
    by_tag: Mapping[str, Group] = field(default_factory=dict)
    samples: Samples | None = None
    budget: BudgetUse | None = None
    early_stops: EarlyStops | None = None

    def as_json(self) -> dict[str, Json]:
        """The object of `summary.json`, its keys in the order of SPEC section 13; the last three where they are."""
        found = asdict(self)
        for name in ("samples", "budget", "early_stops"):
            if found[name] is None:
                del found[name]
        return {"schema_version": SCHEMA_VERSION, **found}
