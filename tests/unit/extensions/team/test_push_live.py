from pathlib import Path

import pytest

from agentv.extensions.team.live import LivePushed
from agentv.extensions.team.push import live_report


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ((1, 1), "1 of 1 row was not pushed"),
        ((1, 8), "1 of 8 rows was not pushed"),
        ((1200, 3000), "1,200 of 3,000 rows were not pushed"),
        ((0, 8), "the end of the run was not pushed"),
    ],
)
def test_what_was_not_pushed_is_counted(missing, words):
    told = live_report(LivePushed(Path("r"), "https://x", 3, "it is away", missing), "agentv push r")
    assert told == f"warning: {words}: it is away. Push the rest with:\n  agentv push r"
