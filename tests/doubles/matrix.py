"""Runs with several targets and prompts, one of them with everything that a matrix can show."""

from agentv.model.run.matrix import (
    ComparedMeasure,
    Counts,
    GroupTotals,
    GroupUsage,
    MatrixCell,
    MatrixComparison,
    MatrixGroup,
    RunMatrix,
)

HOSTILE = "evil\x1b[2J\u202e<b>|`"


def totals(
    passed: int, failed: int, errored: int = 0, interval: tuple[float, float] | None = (0.4, 0.9)
) -> GroupTotals:
    """Return totals for this many cases."""
    judged = passed + failed
    return GroupTotals(
        Counts(judged + errored, passed, failed, errored),
        passed / judged if judged else None,
        passed / judged if judged else None,
        interval if judged else None,
        judged=judged,
        interval_clusters=judged or None,
        clustered_by=("case",) if judged else (),
    )


PRICED = GroupUsage(0.012, None, 0, 0, 10, 10, 0.0012, 812.5, None)
UNPRICED = GroupUsage(answers=10, latency_ms=40.0)
NO_ANSWER = GroupUsage()

MATRIX = RunMatrix(
    targets=("gpt", "claude", HOSTILE),
    prompts=("plain", "short"),
    variants=(None,),
    cells=(
        MatrixCell("gpt", "plain", None, totals(6, 4), PRICED),
        MatrixCell("claude", "plain", None, totals(9, 1), UNPRICED),
        MatrixCell(HOSTILE, "plain", None, totals(0, 0, 10), NO_ANSWER),
        MatrixCell("gpt", "short", None, totals(7, 3), PRICED),
        MatrixCell("claude", "short", None, totals(9, 0, 1), UNPRICED),
    ),
    by_target=(
        MatrixGroup("gpt", totals(13, 7), PRICED),
        MatrixGroup("claude", totals(18, 1, 1), UNPRICED),
        MatrixGroup(HOSTILE, totals(0, 0, 10), NO_ANSWER),
    ),
    by_prompt=(MatrixGroup("plain", totals(15, 5, 10), PRICED), MatrixGroup("short", totals(16, 3, 1), PRICED)),
    comparisons=(
        MatrixComparison(
            by="target",
            base="gpt",
            candidate="claude",
            verdict="better",
            cases=10,
            pairs=19,
            clusters=10,
            errored=1,
            measures=(
                ComparedMeasure("pass rate", 0.65, 0.947, 0.297, (0.08, 0.51), 0.975, 0.01, (0.25, 0.3)),
                ComparedMeasure("mean score", 0.65, 0.947, 0.297, (0.08, 0.51), 0.975, 0.01, (0.25, 0.3)),
            ),
            shown_by=("pass rate", "mean score"),
        ),
        MatrixComparison(by="target", base="gpt", candidate=HOSTILE, verdict=None, errored=10, only_base=10),
        MatrixComparison(
            by="prompt",
            base="plain",
            candidate="short",
            verdict="inconclusive",
            cases=10,
            pairs=19,
            clusters=10,
            measures=(
                ComparedMeasure("pass rate", 0.75, 0.8, 0.05, (-0.1, 0.2), 0.95, 0.41),
                ComparedMeasure("mean score", 0.75, 0.82, 0.07, (-0.08, 0.22), 0.95, 0.3),
            ),
            only_base=10,
        ),
    ),
    tests=2,
)
