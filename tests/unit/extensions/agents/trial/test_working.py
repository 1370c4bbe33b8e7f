"""Progress lines of working agents: their text and width, with terminal control sequences neutralized."""

import pytest

from agentv.extensions.agents.trial.working import AgentsView, tokens
from agentv.model.run.events import AgentProgress
from agentv.model.values.trace import AgentActivity
from agentv.reports.text import cells

BUSY = AgentActivity("shop.get_order", 12, 30, 1_234_567, 0.0412)
HOSTILE = "\x1b[2J\x1b[31m\u202eevil\u2066\r\nPASSED \u200b\x07" + "漢" * 10_000


def view(*given, now=65.0):
    """Return a view of agents that started at time 0, seen at `now`."""
    times = iter([0.0] * len(given))
    made = AgentsView(lambda: next(times, now))
    for number, (case, activity, names) in enumerate(given):
        made.take(AgentProgress(f"{number}", case, **{"target": "agent", **names}, activity=activity))
    return made


def test_before_its_first_tool_an_agent_is_working():
    (line,) = view(("tax", AgentActivity(), {})).lines(80, 5)
    assert line == "  tax: working, 1 min 05 s"


@pytest.mark.parametrize("width", [1, 5, 20, 40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal_or_steers_it(width):
    names = {"variant": HOSTILE, "target": HOSTILE, "prompt_id": HOSTILE, "sample": 2, "repeat": 3}
    hostile = (HOSTILE, AgentActivity(HOSTILE, 10**30, 1, 10**30, 10.0**30), names)
    shown = view(hostile, ("tax", BUSY, {}), hostile)
    for line in shown.lines(width, 10):
        assert cells(line) <= width
        assert "\u202e" not in line
        assert line.isprintable()
    assert shown.log_line().isprintable()
    assert len(shown.log_line()) < 500


def test_an_agent_that_has_ended_is_gone_and_one_that_goes_on_keeps_its_time():
    shown = view(("tax", BUSY, {}), now=10.0)
    shown.take(AgentProgress("0", "tax", "agent", activity=None))
    assert (len(shown), shown.lines(80, 5), shown.log_line()) == (0, [], "")
    shown.take(AgentProgress("0", "tax", "agent", activity=BUSY))
    assert shown.lines(80, 5)[0].endswith(" 10 s")


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1 token"), (999, "999 tokens"), (1000, "1.0k tokens"), (999_949, "999.9k tokens"), (999_950, "1.0M tokens")],
)
def test_tokens(number, text):
    assert tokens(number) == text
