"""Hand-made comparisons."""

from msgspec.structs import replace

from agentv.model.run.comparison import (
    CaseKey,
    CaseOutcome,
    CasePair,
    CheckChange,
    Comparison,
    ComparisonSettings,
    GroupComparison,
    Judgement,
    LeftOut,
    Level,
    MeasureResult,
    MovedCase,
    Moves,
    RunLabel,
    SampleEvidence,
)

BASE = RunLabel("20261121T140322Z-7f3a", "/repo/.agentv/results/20261121T140322Z-7f3a", ("gpt",), 44)
CANDIDATE = RunLabel("20261122T090000Z-11ab", "/repo/.agentv/results/20261122T090000Z-11ab", ("claude",), 45)
MOVES = Moves(wins=3, losses=9, ties=26, fixed=1, broken=6)
LOWER = MeasureResult("mean score", -0.12, (-0.19, -0.05), 0.0021, 0.0021, "worse", 0.95)
WORSE = Judgement(
    pairs=38,
    cases=38,
    clusters=38,
    before=Level(0.87, 35, 35 / 38),
    after=Level(0.75, 30, 30 / 38),
    moves=MOVES,
    score=LOWER,
    rate=None,
    verdict="worse",
    shown_by=("mean score",),
)
UNSURE = replace(
    WORSE,
    score=MeasureResult("mean score", -0.03, (-0.1, 0.04), 0.41, 0.41, "inconclusive", 0.95),
    verdict="inconclusive",
    shown_by=(),
    detectable=0.1,
    needed=430,
)


def key(case_id, *, suite="refunds", prompt=None, target="claude") -> CaseKey:
    return CaseKey(suite, case_id, prompt, target)


def pair(case_id, before, after, **given) -> CasePair:
    new = key(case_id, **given)
    sides = (
        CaseOutcome("passed" if score >= 0.8 else "failed", score, 1, 0.8, 1, 1, 1, rate=float(score >= 0.8))
        for score in (before, after)
    )
    return CasePair(new._replace(target="gpt"), new, *sides)


def moved(case_id="return-late", before=1.0, after=0.0, *changes: CheckChange, **given) -> MovedCase:
    one = pair(case_id, before, after, **given)
    answers = ("You may return it within 30 days.", "No.\x1b[2J")
    old, new = (
        SampleEvidence(side.status, side.score, output, 1, 1)
        for side, output in zip((one.before, one.after), answers, strict=True)
    )
    return MovedCase(one, old, new, changes)


LACKS = CheckChange("contains: '30 days'", "contains", 1.0, 0.0, True, False, "No.\x1b[2J")
RUDE = CheckChange("is kind", "llm-rubric", 0.9, 0.85, True, True, "says only\nno")
MOVED = (moved("return-late", 1.0, 0.0, LACKS, RUDE), moved("refund", 0.5, 0.9))


def comparison(whole: Judgement | None = WORSE, **given) -> Comparison:
    """Return a comparison with the judgement WORSE and two moved cases; keywords set its fields."""
    fields = {
        "question": ComparisonSettings(),
        "pairs": tuple(one.pair for one in MOVED),
        "left_out": LeftOut(),
        "moved": MOVED,
        **given,
    }
    return Comparison(BASE, CANDIDATE, whole=whole, **fields)


EVERYTHING = comparison(
    question=ComparisonSettings(by="suite"),
    groups=(GroupComparison("orders", UNSURE), GroupComparison("refunds", WORSE)),
    left_out=LeftOut(
        only_base=(key("old-1"), key("old-2", prompt="plain")),
        only_candidate=tuple(key(f"new-{number}") for number in range(12)),
        edited={key("window"): ("input", "checks")},
        errored=(key("broken"),),
        unfinished=(key("late-1"), key("late-2")),
    ),
    edited=1,
    notes=("the judge differs: opus → \x1b[2Jhaiku",),
)
