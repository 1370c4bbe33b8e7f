from agentv.reports.commands.stored_run import LONGEST_DIFF, text_diff


def test_no_line_can_steer_a_terminal():
    assert text_diff("a", "\x1b[2J") == ["@@ -1 +1 @@", "-a", "+\\x1b[2J"]


def test_very_long_texts_are_not_compared():
    assert text_diff("a", "b\n" * LONGEST_DIFF) == ["too long to compare: 1 and 399,999 characters"]
