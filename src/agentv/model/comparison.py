"""Two runs of the same cases, side by side: what each case came to in both, and what that shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from agentv.model.grade import TOLERANCE
from agentv.model.suite import Aggregate
from agentv.model.trial import Status

Verdict = Literal["better", "worse", "equivalent", "cannot tell"]
"""What is shown of a candidate; `equivalent`: any difference is smaller than the margin."""

Change = Literal["input", "checks", "threshold", "text"]
"""What differs in an edited case, as far as rows can say; `text`: something that they do not hold."""

Measure = Literal["mean score", "pass rate"]
"""What decides: the scores of cases, and their verdicts as 1 and 0."""

Loss = Literal["failed", "errored", "skipped", "missing"]
"""What became of a case that passed in the base; `missing`: the candidate does not hold it."""

Interval = tuple[float, float]


class CaseKey(NamedTuple):
    """Which case of a run, on which target, with which prompt.

    Attributes:
        suite: its name; with its file where a run holds several suites of that name.
        prompt: None where the case gives its own input.
    """

    suite: str
    case_id: str
    prompt: str | None
    target: str


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What became of one case in one run.

    Attributes:
        status: the case's verdict over its samples.
        score: mean over its judged samples, 0..1; None where one of them was not judged. In a pair of which one side
            was sampled until decided, 1 or 0 as the case passed: when that ends hangs on what came out, which bends the
            mean.
        samples: how many were judged.
        sha256: of all that was written for the case.
        input, checks: hashes of what was sent, and of what it was judged by; they tell what an edit touched.
        cluster: what its score hangs together with, such as its conversation; None: with nothing but itself.
        places: where its rows begin in the run's `index.jsonl`, in bytes.
        repeat: samples that it was to get; at most, where `alpha` is given.
        alpha: it was sampled until decided, wrongly with this chance; None: it got all its samples.
    """

    status: Status
    score: float | None
    samples: int
    threshold: float
    sha256: str
    input: int
    checks: int
    tags: tuple[str, ...] = ()
    cluster: str | None = None
    places: tuple[int, ...] = ()
    repeat: int = 1
    aggregate: Aggregate = "mean"
    alpha: float | None = None

    @property
    def judged(self) -> bool:
        """Whether there is a verdict and a score."""
        return self.status in ("passed", "failed") and self.score is not None


@dataclass(frozen=True, slots=True)
class Pair:
    """A case that was judged in both runs."""

    before_key: CaseKey
    after_key: CaseKey
    before: CaseOutcome
    after: CaseOutcome

    @property
    def delta(self) -> float:
        """Score of the candidate less that of the base, -1..1; exactly 0 where only rounding tells them apart."""
        delta = (self.after.score or 0.0) - (self.before.score or 0.0)
        return delta if abs(delta) > TOLERANCE else 0.0

    @property
    def gain(self) -> float | None:
        """How much of the room above the base's score was gained: delta / (1 - base); None where there was none.

        Source: R. R. Hake, "Interactive-engagement versus traditional methods", American Journal of Physics 66 (1998),
        64-74; `normalized_gain` of AgentV's compare.
        """
        room = 1.0 - (self.before.score or 0.0)
        return self.delta / room if room > TOLERANCE else None

    @property
    def fixed(self) -> bool:
        """It failed and now passes."""
        return (self.before.status, self.after.status) == ("failed", "passed")

    @property
    def broken(self) -> bool:
        """It passed and now fails."""
        return (self.before.status, self.after.status) == ("passed", "failed")

    @property
    def flip(self) -> float:
        """The verdict of the candidate less that of the base, 1 where a case passes: 1, 0 or -1."""
        return float(self.fixed) - float(self.broken)

    @property
    def by_verdict(self) -> bool:
        """Whether verdicts are compared instead of mean scores, since one side was sampled until decided."""
        return self.before.alpha is not None or self.after.alpha is not None

    @property
    def moved(self) -> bool:
        """Whether its score or its verdict changed."""
        return self.delta != 0.0 or self.before.status != self.after.status

    @property
    def outcome(self) -> Literal["win", "loss", "tie"]:
        """By the score."""
        return "win" if self.delta > 0 else "loss" if self.delta < 0 else "tie"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sample of a case that moved: what it answered, and what became of it."""

    status: Status
    score: float | None
    output: str | None
    sample: int
    repeat: int


@dataclass(frozen=True, slots=True)
class CheckChange:
    """An assertion that did not end alike in both runs.

    Attributes:
        before, after: its score; None where it errored or was not there.
        passed_before, passed_after: likewise.
        evidence: what it said of the candidate's answer.
    """

    name: str
    type: str
    before: float | None
    after: float | None
    passed_before: bool | None
    passed_after: bool | None
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class MovedCase:
    """A case whose score or verdict changed: of its samples those that show it best."""

    pair: Pair
    before: Evidence
    after: Evidence
    changes: tuple[CheckChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Level:
    """What one run comes to over the cases that are compared: its mean score, and how many passed."""

    score: float
    passed: int


@dataclass(frozen=True, slots=True)
class Moves:
    """Which way cases went.

    Attributes:
        wins, losses, ties: by score.
        win_interval: of the share of wins among the cases whose score changed; None where none did, or cases hang
            together: it counts each of them.
        fixed, broken: cases that now pass, cases that now fail.
        flips_p: McNemar's exact p-value over them; None where cases hang together, likewise.
    """

    wins: int
    losses: int
    ties: int
    win_interval: Interval | None
    fixed: int
    broken: int
    flips_p: float | None


@dataclass(frozen=True, slots=True)
class Measured:
    """What one measure shows by itself.

    Attributes:
        delta: its mean difference, candidate less base, -1..1.
        interval: of that; None of so few clusters that none would hold.
        p: two-sided, of a sign-flip permutation test; corrected where two measures decide.
        p_of_claim: of the verdict, tested at the margin; corrected likewise.
    """

    measure: Measure
    delta: float
    interval: Interval | None
    p: float
    p_of_claim: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the pairs of one comparison show.

    Attributes:
        pairs: how many cases were compared.
        clusters: how many independent groups they make; as many as `pairs` where every case stands alone.
        delta, interval: mean difference of the scores, candidate less base, -1..1; the interval is None of so few
            clusters that none would hold.
        p: two-sided, of a sign-flip permutation test of the differences; corrected where two measures decide.
        p_of_claim: of the verdict, tested at the margin, and corrected for the comparisons that were made beside it.
        verdict: of both measures: what is worse in one of them is worse.
        gain, room: mean normalized gain, over so many cases where there was room for one; None where there were none.
        detectable: the smallest mean difference that so many such cases show four times out of five.
        needed: how many such cases would show the difference that was found so often; None where these are enough,
            no number that anybody writes is, or the difference is likelier chance.
        rate: the same of the verdicts; None where every score moved just as its verdict did, so that both are one.
        shown_by: the measures that show the verdict; none where it cannot be told.
        tested: how many measures p is corrected for.
        measure: what delta, interval and p are of: the pass rate where every pair is compared by its verdicts.
    """

    pairs: int
    clusters: int
    before: Level
    after: Level
    moves: Moves
    delta: float
    interval: Interval | None
    gain: float | None
    room: int
    p: float
    p_of_claim: float
    verdict: Verdict
    detectable: float
    needed: int | None = None
    rate: Measured | None = None
    shown_by: tuple[Measure, ...] = ("mean score",)
    tested: int = 1
    measure: Measure = "mean score"
    rates_compare: bool = True

    @property
    def deciding(self) -> Measured:
        """The measure that the verdict is told by: the scores unless the pass rate alone shows it."""
        if self.rate is not None and self.shown_by == ("pass rate",):
            return self.rate
        return Measured(self.measure, self.delta, self.interval, self.p, self.p_of_claim, self.verdict)


@dataclass(frozen=True, slots=True)
class RunLabel:
    """Which run it is.

    Attributes:
        path: of its directory, absolute.
        targets: those that are compared.
        cases: how many of them it holds.
        missing: how many were planned and have no row: the run was cut off, or goes on.
    """

    run_id: str
    path: str
    targets: tuple[str, ...]
    cases: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Cases that are in no number of a comparison, and why.

    Attributes:
        only_base, only_candidate: the other run does not hold them.
        edited: case → what differs; the runs did not ask, or judge, the same.
        errored, unfinished: something broke, or was not run, in one of the runs.
    """

    only_base: tuple[CaseKey, ...] = ()
    only_candidate: tuple[CaseKey, ...] = ()
    edited: Mapping[CaseKey, tuple[Change, ...]] = field(default_factory=dict)
    errored: tuple[CaseKey, ...] = ()
    unfinished: tuple[CaseKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """The comparison of one suite, or of the cases with one tag."""

    name: str
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Question:
    """How two runs are compared.

    Attributes:
        margin: a difference of the mean score that does not matter, 0..1.
        alpha: how often a difference may be claimed where there is none; intervals hold 1 - alpha.
        cluster: a key of the metadata whose values say which cases hang together.
        by: what is compared apart, too.
        edited: take in cases whose text differs.
        limit: how many of the cases that moved are shown.
    """

    margin: float = 0.0
    alpha: float = 0.05
    cluster: str | None = None
    by: Literal["suite", "tag"] | None = None
    edited: bool = False
    limit: int = 20


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against a base.

    Attributes:
        whole: None where no pair is left.
        same: both are one run.
        pairs: every case that was compared, worst first.
        moved: the worst of those that moved, with evidence.
        edited: how many of the pairs are of cases whose text differs, where those were asked for.
        lost: the cases that passed in the base and do not pass in the candidate, whether or not they are compared, and
            what became of each.
        notes: what else differs between the runs, such as their judges.
    """

    base: RunLabel
    candidate: RunLabel
    question: Question
    whole: Judgement | None
    pairs: tuple[Pair, ...]
    left_out: LeftOut
    groups: tuple[Group, ...] = ()
    moved: tuple[MovedCase, ...] = ()
    same: bool = False
    edited: int = 0
    notes: tuple[str, ...] = ()
    lost: Mapping[CaseKey, Loss] = field(default_factory=dict)

    @property
    def against_base(self) -> tuple[Comparison, ...]:
        """Every candidate against the base: this one."""
        return (self,)

    @property
    def shown_worse(self) -> bool:
        """Whether the whole, or a group of its own, is shown to be worse."""
        judged = [one.judgement for one in self.groups]
        return any(one.verdict == "worse" for one in (*judged, *((self.whole,) if self.whole else ())))


@dataclass(frozen=True, slots=True)
class Matrix:
    """More than two runs, each against each.

    Attributes:
        comparisons: of every two of them, (earlier, later) in the order in which they were named; the p-values are
            corrected for their number.
        scores: case → its score in each run, None where it has none; the cases that do not score alike, most apart
            first.
        omitted: how many more such cases there are.
    """

    runs: tuple[RunLabel, ...]
    comparisons: Mapping[tuple[int, int], Comparison]
    scores: Mapping[CaseKey, tuple[float | None, ...]]
    omitted: int = 0

    @property
    def against_base(self) -> tuple[Comparison, ...]:
        """Every candidate against the base, which is the run that was named first."""
        return tuple(one for (base, _), one in self.comparisons.items() if base == 0)
