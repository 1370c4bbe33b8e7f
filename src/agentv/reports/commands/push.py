"""What `agentv push` did, in words."""

from __future__ import annotations

from agentv.model.run.pushed import Pushed
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line

_SHOWN = 3


def render_pushed(pushed: Pushed) -> str:
    """One line, and one more where artifacts were too large."""
    sent = [plural(pushed.rows, "row")] if pushed.rows else []
    if pushed.artifacts:
        sent.append(plural(pushed.artifacts, "artifact"))
    what = ", ".join(sent) or "no new rows"
    lines = [f"{pushed.run_id}: {what} pushed" if pushed.changed else f"{pushed.run_id}: the server has all of it"]
    if pushed.skipped:
        named = ", ".join(map(one_line, pushed.skipped[:_SHOWN]))
        more = f" and {len(pushed.skipped) - _SHOWN} more" if len(pushed.skipped) > _SHOWN else ""
        lines.append(f"warning: too large to push: {named}{more}")
    return "\n".join(lines)
