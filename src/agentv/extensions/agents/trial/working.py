"""Progress of the agents that are working in a run, one line per agent.

Names of tools come from agents, and names of cases from files. They are escaped and cut before they are shown.
"""

from __future__ import annotations

from collections.abc import Callable

from agentv.model.run.events import AgentProgress
from agentv.model.values.formatting import elapsed, money, plural
from agentv.model.values.trace import AgentActivity
from agentv.reports.text import cells, fitted, one_line

LISTED = 3
"""Maximum number of agents in a log line."""

_LONGEST = 100
"""Maximum number of characters of a name that are used."""

_LOG_NAME = 40
"""Maximum width of a name, in columns."""


class AgentsView:
    """The working agents of a run, in the order in which they started.

    Args:
        clock: returns seconds since a fixed point in time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began: dict[str, float] = {}
        self._working: dict[str, tuple[AgentProgress, AgentActivity, float]] = {}  # with its start time
        self._targets: set[str] = set()

    def take(self, progress: AgentProgress) -> None:
        """Update the progress of an agent, or remove an agent that has ended."""
        self._targets.add(progress.target)
        if progress.activity is None:
            self._working.pop(progress.key, None)
            return
        began = self._began.setdefault(progress.key, self._clock())
        self._working[progress.key] = (progress, progress.activity, began)

    def __len__(self) -> int:
        """Number of working agents."""
        return len(self._working)

    def lines(self, width: int, most: int) -> list[str]:
        """Return at most `most` lines of `width` columns. The last one counts the agents without a line."""
        working = list(self._working.values())
        if most < 1 or not working:
            return []
        shown = working if len(working) <= most else working[: most - 1]
        found = [fitted(f"  {self._line(*one)}", width) for one in shown]
        more = len(working) - len(shown)
        return [*found, fitted(f"  and {plural(more, 'more agent')}", width)] if more else found

    def log_line(self) -> str:
        """A log line for the first agents: `total as bare: edit, turn 3, 1 min 05 s; and 2 more agents`."""
        working = list(self._working.values())
        parts = [self._line(*one) for one in working[:LISTED]]
        more = len(working) - LISTED
        return "; ".join([*parts, *([f"and {plural(more, 'more agent')}"] if more > 0 else [])])

    def _line(self, progress: AgentProgress, activity: AgentActivity, began: float) -> str:
        words = [
            fitted(one_line(activity.last_tool, _LONGEST) or "working", _LOG_NAME),
            f"turn {activity.turns}" if activity.turns else "",
            money(activity.cost_usd) if activity.cost_usd is not None else "",
            tokens(activity.tokens) if activity.tokens is not None else "",
            elapsed(self._clock() - began),
        ]
        return f"{self._name(progress)}: {', '.join(filter(None, words))}"

    def _name(self, progress: AgentProgress) -> str:
        """The case and what distinguishes its trial from its others. A long case id is cut at its end."""
        rest = ""
        if progress.prompt_id is not None:
            rest += f" with {one_line(progress.prompt_id, _LONGEST)}"
        if len(self._targets) > 1:
            rest += f" on {one_line(progress.target, _LONGEST)}"
        if progress.variant is not None:
            rest += f" as {one_line(progress.variant, _LONGEST)}"
        rest += f" #{progress.sample}" if progress.repeat > 1 else ""
        case = one_line(progress.case, _LONGEST)
        return fitted(fitted(case, max(_LOG_NAME // 3, _LOG_NAME - cells(rest))) + rest, _LOG_NAME)


def tokens(number: int) -> str:
    """Format a number of tokens: `950 tokens`, `12.3k tokens`, `1.2M tokens`."""
    if number < 1000:
        return plural(number, "token")
    shown, unit = (number / 1e3, "k") if number < 999_950 else (number / 1e6, "M")
    return f"{shown:.1f}{unit} tokens"
