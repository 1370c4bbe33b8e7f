"""`gate: corrected`: refused, before anything runs, where it cannot decide."""

from __future__ import annotations

from collections.abc import Iterable

from agentv.errors import UsageError
from agentv.model.suite.suite import Suite


def check_gates(suites: Iterable[Suite], *, ends_early: bool) -> None:
    """Refuse gates that cannot decide a run.

    Raises:
        UsageError: the suite is an exam, its samples are combined by another rule, cases or samples end early, or of
            two suites of one name only one has a gate.
    """
    gates: dict[str, tuple[object, object]] = {}
    for suite in suites:
        where = f"the suite '{suite.name}'"
        gate = (suite.run.gate and (suite.run.gate, suite.run.min_pass_rate), suite.judge_minimums)
        if gates.setdefault(suite.name, gate) != gate:
            raise UsageError(f"two suites are named '{suite.name}', and their gates differ", "give each its own name")
        if suite.run.gate is None:
            continue
        if suite.exam is not None:
            what = "an exam is passed only if every case passes, so 'gate: corrected' cannot decide it"
            raise UsageError(what, "move 'gate' from the project's 'run' to the 'run' of eval files")
        if suite.run.aggregate not in (None, "mean"):
            what = f"{where} sets aggregate: {suite.run.aggregate}, but 'gate: corrected' uses the share of samples"
            raise UsageError(what, "delete one of them")
        if ends_early or suite.run.until is not None or suite.run.cost_limit_usd is not None:
            what = f"{where} has 'gate: corrected', which needs all samples, but results decide how many run"
            raise UsageError(what, "run it without --until, --against and a cost limit of its cases")
