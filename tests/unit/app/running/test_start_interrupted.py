from __future__ import annotations

from agentv.app.running.start import InterruptedTrial, interrupted_trials
from agentv.model.values.usage import TokenUsage
from agentv.store.files.directory import HISTORY, JOURNAL
from agentv.store.journal.answers import HEADER, spent_line

ROW = '{{"test_id":"{0}","target":"t","status":"errored","cost_usd":{1},"key":"{0}","error":{{"code":"{2}"}}}}\n'


def test_only_pending_trials_count_and_a_call_counts_once(tmp_path):
    torn = spent_line("t", "a", None, 9.0, "calls")[:-3] + b"0}\n"  # its checksum is wrong
    spent = [
        spent_line("t", "a", TokenUsage(3, 4), 0.5, "calls"),
        spent_line("t", "a", None, 0.25, "calls"),
        spent_line("t", "a", TokenUsage(3, 4), None, "unpriced"),
        spent_line("t", "b", None, 1.0, "done"),
        spent_line("t", "b", None, 1.0),  # of an earlier version
    ]
    (tmp_path / JOURNAL).write_bytes(HEADER + b"".join([*spent, torn]))
    rows = [("calls", 0.75, "interrupted"), ("row", 2, "interrupted"), ("row", 1, "interrupted"), ("new", 4, "timeout")]
    (tmp_path / HISTORY).write_text("".join(ROW.format(*row) for row in rows))
    assert interrupted_trials(tmp_path, {"calls", "unpriced", "row", "new"}) == {
        "calls": InterruptedTrial(2, 0.75),
        "unpriced": InterruptedTrial(1, None),
        "row": InterruptedTrial(0, 3.0),
    }
