from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.app.results.selecting import choose
from agentv.app.results.stored import StoredRun
from agentv.errors import StoreError, UsageError
from agentv.model.run.matrix import Counts
from agentv.model.run.runs import Selection
from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import row_of
from doubles.stored_runs import write_rows
from doubles.trials import ROOT, finished, trial

TRIALS = [
    finished("passed", trial=trial("refund-1", tags=("smoke", "en"))),
    finished("failed", trial=trial("refund-2", target="haiku")),
    finished("errored", trial=trial("order-1", suite="orders")),
    finished("skipped", trial=trial("order[locale=de]", suite="orders", tags=("de",)), score=None),
    finished("failed", trial=trial("Refund-3", tags=("de",))),
]


def stored(path, *results):
    write_rows(path, (to_json(row_of(result, ROOT)) for result in results))
    return StoredRun(path, ROOT, "run", {}, None)


def ids(found):
    return [one.trial.case.id for one in found.run.results()]


@pytest.mark.parametrize(
    ("selection", "found"),
    [
        ({}, ["refund-1", "refund-2", "Refund-3", "order-1", "order[locale=de]"]),
        ({"statuses": ("errored", "failed")}, ["refund-2", "Refund-3", "order-1"]),
        ({"cases": ("refund-1", "order-?")}, ["refund-1", "order-1"]),
        ({"cases": ("[rR]efund-[!1]",)}, ["refund-2", "Refund-3"]),
        ({"cases": ("order[locale=de]",)}, ["order[locale=de]"]),
        ({"suites": ("order*",), "statuses": ("errored",)}, ["order-1"]),
        ({"targets": ("haiku",)}, ["refund-2"]),
        ({"tags": ("en", "de")}, ["refund-1", "Refund-3", "order[locale=de]"]),
        ({"tags": ("de",), "suites": ("refunds",)}, ["Refund-3"]),
    ],
)
def test_trials_are_found_by_what_their_rows_say(tmp_path, selection, found):
    chosen = choose(stored(tmp_path, *TRIALS), Selection(**selection))
    assert ids(chosen) == found
    assert (chosen.counts.total, chosen.wanted) == (len(found), len(found))


def test_failures_come_first_and_a_limit_leaves_the_counts_as_they_are(tmp_path):
    chosen = choose(stored(tmp_path, *TRIALS), Selection(), 4, failures_first=True)
    assert ids(chosen) == ["refund-2", "Refund-3", "order-1", "order[locale=de]"]
    assert (chosen.counts, chosen.wanted) == (Counts(5, 1, 2, 1, 1), 4)


def test_of_a_trial_with_two_rows_the_newest_counts(tmp_path):
    again = [replace(TRIALS[1], status="passed"), replace(TRIALS[1], status="errored")]
    chosen = choose(stored(tmp_path, *TRIALS, *again), Selection(statuses=("errored",)))
    assert sorted(ids(chosen)) == ["order-1", "refund-2"]


def test_names_that_are_there_and_of_no_trial_together_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"matches --suite 'orders' and --target 'haiku'$"):
        choose(stored(tmp_path, *TRIALS), Selection(suites=("orders",), targets=("haiku",)))


def test_a_line_that_is_no_row_is_named(tmp_path):
    run = stored(tmp_path, *TRIALS)
    run.index.write_bytes(run.index.read_bytes() + b"{}\n")
    with pytest.raises(StoreError, match=r"index.jsonl:6: not a row of a run"):
        choose(run, Selection())


NAMES = st.text("ab*?[]!^-é\n", max_size=4) | st.from_regex(r"\A[ab]?\[!?[ab]-?[abc]\][ab*?]?\Z")


@settings(max_examples=60)  # each example writes a file
@example(["b[aa]", "a"], "[b-a]*")
@given(st.lists(NAMES, max_size=6, unique=True), NAMES)
def test_patterns_match_as_in_a_shell(tmp_path_factory, names, pattern):
    run = stored(tmp_path_factory.mktemp("run"), *(finished(trial=trial(name)) for name in names))
    matching = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
    if matching:
        assert ids(choose(run, Selection(cases=(pattern,)))) == matching
    else:
        with pytest.raises(UsageError, match="no trial"):
            choose(run, Selection(cases=(pattern,)))
