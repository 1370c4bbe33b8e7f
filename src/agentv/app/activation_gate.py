"""The gate of `activation`: `min_recall` and `min_precision` of every skill, with every target and variant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentv.model.run.summary import Activation, GateResult
from agentv.model.suite.suite import SkillMinimums, Suite
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import percent


def activation_gate(suite: Suite, activations: Iterable[Activation], failed: int) -> GateResult:
    """Whether all skills of a suite are distinguished as well as they must be, by the point estimates.

    A minimum decides its own kind of mistake alone: with `min_recall`, no query may load a skill beside the right one.

    Args:
        suite: with minimums.
        activations: of the run.
        failed: how many of its queries failed, which the gate decides instead.
    """
    minimums = suite.skill_minimums or SkillMinimums()
    found = [one for one in activations if one.suite == suite.name]
    checked = [shown for one in found for shown in (*_checked(one, minimums), *_undecided(one, minimums))]
    below = [shown for shown, reached, _ in checked if not reached]
    if not checked or below:
        why = "; ".join(below) or "no query was judged"
        return GateResult("activation", suite.name, passed=False, why=why, failed=failed)
    unsure = sum(not sure for _, _, sure in checked)
    names = {"recall": minimums.recall, "precision": minimums.precision}
    needed = " and ".join(f"{name} {percent(least)}" for name, least in names.items() if least is not None)
    reach = f"{unsure} of {plural(len(checked), 'interval')} reach below that; more queries narrow them"
    warning = reach if unsure else None
    return GateResult("activation", suite.name, True, f"every skill reaches {needed}", warning, failed)


def _checked(found: Activation, minimums: SkillMinimums) -> Iterator[tuple[str, bool, bool]]:
    """Each required measure in words, whether it is reached, and whether the lower end of its interval is, too."""
    who = " ".join(one for one in (found.target, found.variant) if one)
    for skill in found.skills:
        measures = (("recall", skill.recall, minimums.recall), ("precision", skill.precision, minimums.precision))
        for name, measure, least in measures:
            if least is None:
                continue
            if measure is None:
                yield f"{name} of {skill.skill} with {who} is unknown", False, False
                continue
            shown = f"{name} of {skill.skill} with {who} is {percent(measure.value)}, required {percent(least)}"
            yield shown, measure.value >= least, measure.interval[0] >= least


def _undecided(found: Activation, minimums: SkillMinimums) -> Iterator[tuple[str, bool, bool]]:
    """The wrong queries whose mistake no minimum is about, in words."""
    wrong = found.judged - found.right
    missed = sum(skill.false_negatives for skill in found.skills)
    silent = sum(cell.queries for cell in found.confusion if cell.expected is not None and cell.loaded is None)
    who = " ".join(one for one in (found.target, found.variant) if one)
    if minimums.precision is None and wrong > missed:
        count = f"{wrong - missed} of {found.judged} queries with {who}"
        yield f"{count} loaded a skill that they should not; only 'min_precision' allows that", False, False
    if minimums.recall is None and silent:
        count = f"{silent} of {found.judged} queries with {who}"
        yield f"{count} loaded no skill; only 'min_recall' allows that", False, False
