"""Hand-made cases of a run, in the form used by comparisons."""

from collections.abc import Mapping

from agentv.app.compare.matching import CaseScope, ChosenCases, KeyedCases, RunCases, SharedValues
from agentv.model.run.comparison import CaseKey, CaseOutcome


def keyed_cases(outcomes: Mapping[CaseKey, CaseOutcome]) -> KeyedCases:
    cases = RunCases(SharedValues())
    for key, outcome in outcomes.items():
        cases.add(CaseScope(key.suite, None, key.prompt, key.target, key.variant), key.case_id, outcome)
    return KeyedCases(ChosenCases(cases, range(len(cases))))
