from __future__ import annotations

from msgspec import structs

from agentv.model.values.response import Failure
from agentv.reports.run.formatting import check, reason
from agentv.reports.run.trial_view import trial_view
from doubles.trials import errored_score, finished

SAID = f"judge 'j' gave no verdict that can be read; it replied '{'x' * 100}'"


def test_what_an_assertion_says_is_not_said_of_the_trial_too():
    score = errored_score(name="select-best: 'shortest'")
    score = structs.replace(score, grade=structs.replace(score.grade, error=Failure("unreadable-verdict", SAID)))
    error = Failure("unreadable-verdict", f"select-best: 'shortest': {SAID}")
    view = trial_view("errored", finished("errored", error=error, scores=[score]))
    assert reason(view) == "unreadable-verdict: select-best: 'shortest'"
    assert SAID in check(view.findings[0])
    assert SAID in reason(structs.replace(view, findings=()))
