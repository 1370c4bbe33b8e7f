"""Cases of a run, made by hand, as a comparison holds them."""

from collections.abc import Mapping

from agentv.app.compare.matching import CaseScope, ChosenCases, KeyedCases, RunCases, SharedValues
from agentv.model.run.comparison import CaseKey, CaseOutcome


def held(outcomes: Mapping[CaseKey, CaseOutcome]) -> KeyedCases:
    """The cases with these keys."""
    cases = RunCases(SharedValues())
    for key, outcome in outcomes.items():
        cases.add(CaseScope(key.suite, None, key.prompt, key.target, key.variant), key.case_id, outcome)
    return KeyedCases(ChosenCases(cases, range(len(cases))))
