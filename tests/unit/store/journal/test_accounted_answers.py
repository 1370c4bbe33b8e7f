"""Answers whose cost a row reports, by where they stand in the journal."""

from __future__ import annotations

import pytest
from msgspec import structs
from msgspec.structs import replace

from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.store.files.encoding import to_json
from agentv.store.journal.accounted_answers import AccountedAnswers
from agentv.store.journal.answers import HEADER, answer_line, row_checksum_line
from agentv.store.journal.journal_reader import JournalReader
from agentv.store.rows.rows import RelativePaths, row_of
from doubles.stores import call
from doubles.trials import ROOT, finished, trial

PAID = TargetResponse("yes", cost_usd=0.25, token_usage=TokenUsage(90, 10))
UNPRICED = structs.replace(PAID, cost_usd=None)


def call_for(key, case="case", *, judge=False, **changed):
    """A call for a case of the suite `refunds` on the target `gpt`."""
    made = call(key, case)
    request = replace(made.request, suite="refunds\0a hash", nonces=("n",) if judge else (), **changed)
    return structs.replace(made, request=request)


def row(key="row", case="case", judged=None, **more):
    """The line of a row; `judged`: the answer of a judge whose cost it reports."""
    took = {} if judged is None else {"judge_cost_usd": judged.cost_usd, "judge_token_usage": judged.token_usage}
    result = finished(trial=trial(case, key=key, **more), **took)
    return to_json(row_of(result, RelativePaths(ROOT)))


@pytest.fixture
def of(tmp_path):
    path, readers = tmp_path / "journal.jsonl", []

    def made(journal, superseded=(), current=()):
        path.write_bytes(b"".join((HEADER, *journal)))
        readers.append(JournalReader(path))
        return AccountedAnswers(readers[-1], [line + b"\n" for line in superseded], [line + b"\n" for line in current])

    yield made
    for reader in readers:
        reader.close()


def test_an_answer_before_the_checksum_of_its_trials_superseded_row_is_in_it(of):
    before, behind = answer_line("before", "case", PAID), answer_line("behind", "case", PAID)
    line = row()
    found = of([before, row_checksum_line("row", line), behind], [line])
    assert call_for("before") in found
    assert call_for("behind") not in found
    assert call_for("unknown") not in found
    for other in ({"case": "other"}, {"sample": 2}, {"prompt_id": "p"}):
        assert call_for("before", **other) not in found
    assert structs.replace(call_for("before"), target="another") not in found
    assert structs.replace(call_for("before"), request=replace(call_for("before").request, suite="others")) not in found


def test_of_several_superseded_rows_of_a_trial_the_last_one_counts(of):
    first, second = row("first"), row("second")
    journal = [row_checksum_line("first", first), answer_line("between", "case", PAID)]
    journal += [row_checksum_line("second", second), answer_line("behind", "case", PAID)]
    for order in ([first, second], [second, first]):
        found = of(journal, order)
        assert call_for("between") in found
        assert call_for("behind") not in found


def test_a_row_without_a_checksum_or_that_is_none_counts_for_nothing(of):
    line = row()
    found = of([answer_line("k", "case", PAID)], [line])
    assert call_for("k") not in found
    broken = b'{"key":"row"}'
    found = of([answer_line("k", "case", PAID), row_checksum_line("row", broken)], [broken], [b"no row"])
    assert call_for("k") not in found


@pytest.mark.parametrize("answer", [PAID, UNPRICED])
@pytest.mark.parametrize("superseded", [True, False])
def test_as_many_verdicts_count_as_the_journal_has_and_no_row_reports(of, answer, superseded):
    keys = ("one", "two", "three")
    journal = [answer_line(key, "case", answer, judge=True) for key in keys]
    line, another = row(judged=answer), row("another", judged=answer)
    journal += [row_checksum_line("row", line), row_checksum_line("another", another)]
    for rows, reported in (([], [False] * 3), ([line], [False, False, True]), ([line, another], [False, True, True])):
        found = of(journal, rows, []) if superseded else of(journal, [], rows)
        assert [call_for(key, judge=True) in found for key in keys] == reported, len(rows)
    assert call_for("unknown", judge=True) not in of(journal, [line])
    assert call_for("one", "other", judge=True) not in of(journal, [line])


def test_a_verdict_of_another_run_is_in_a_row_by_its_place_as_an_answer_is(of):
    line = row("row", target="any target", sample=3)
    earlier = structs.replace(PAID, earlier=True)
    before, behind = (answer_line(key, "case", earlier, judge=True) for key in ("before", "behind"))
    found = of([before, row_checksum_line("row", line), behind], [line])
    assert call_for("before", judge=True) in found
    assert call_for("behind", judge=True) not in found


def test_answers_of_targets_are_distinguished_from_those_of_judges_of_the_same_case(of):
    line = row(judged=PAID)
    journal = [answer_line("own", "case", PAID), answer_line("judged", "case", PAID, judge=True)]
    found = of([*journal, row_checksum_line("row", line)], [line])
    assert call_for("own") in found
    assert call_for("judged", judge=True) in found
    assert call_for("own") in found
