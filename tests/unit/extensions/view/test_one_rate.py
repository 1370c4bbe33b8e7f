"""A run has one pass rate and one mean score in every view: the means over its cases."""

import random
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.app.compare.comparing import CompareRequest, compare
from agentv.app.results.listing import totals_of
from agentv.app.trend import trend
from agentv.extensions.view.case_rows import CaseChoice
from agentv.extensions.view.growing import GrowingRun
from agentv.extensions.view.rates import rate_of_cases
from agentv.model.run.comparison import ComparisonSettings
from agentv.store.files.directory import read_document
from agentv.store.rows.reading import read_rows
from agentv.store.totals.summary import PlannedCounts, summarize
from doubles.stored_runs import write_run
from doubles.thorough import examples
from doubles.trials import ROOT, finished, trial

LAW = settings(max_examples=examples(60, 15), deadline=None)
SUITES = [{"name": "refunds", "targets": [{"name": "gpt"}]}]


@st.composite
def runs(draw):
    """Draw two runs of the same cases; each case has at least one judged sample, and perhaps errored ones."""
    repeat = draw(st.integers(1, 4))
    verdicts = draw(st.booleans())
    scores = st.sampled_from((0.0, 1.0)) if verdicts else st.sampled_from((0.0, 0.3, 0.5, 0.8, 1.0))
    cases = draw(st.integers(2, 7))
    clusters = draw(st.lists(st.sampled_from((None, None, "x", "y")), min_size=cases, max_size=cases))

    def run():
        results = []
        for case, cluster in enumerate(clusters):
            judged = draw(st.lists(scores, min_size=1, max_size=repeat))
            samples = [*judged, *[None] * (repeat - len(judged))]
            for number, score in enumerate(draw(st.permutations(samples)), 1):
                given_ = {"sample": number, "repeat": repeat, "conversation_id": cluster}
                status = "errored" if score is None else "passed" if score >= 0.8 else "failed"
                results.append(finished(status, trial=trial(f"case-{case}", **given_), score=score))
        return results

    return run(), run()


def summed(path: Path):
    return summarize(read_rows(path / "index.jsonl"), run_id="r", planned=PlannedCounts(), duration_ms=0.0)


def shown(path: Path, number: int):
    """Return the rate on the pages of a run."""
    run = GrowingRun(path, ROOT, path.parent / f"{number}.sqlite")
    run.catch_up()
    with run.index() as index:
        found = rate_of_cases(index, CaseChoice(), 100, None)
    run.close()
    return found


def close(interval):
    return None if interval is None else pytest.approx(interval)


@LAW
@given(runs())
def test_a_reports_rate_equals_compares_and_that_of_the_pages_and_of_trend(found):
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        results = Path(place) / ".agentv" / "results"
        patch.chdir(place)
        paths = [results / f"2026112{number}T140322Z-7f3a" for number in (1, 2)]
        for path, of in zip(paths, found, strict=True):
            planned = {"trials": len(of), "cases": len({one.trial.case.id for one in of})}
            write_run(path, of, {"suites": SUITES, "planned": planned})
        compared = compare(CompareRequest(tuple(map(str, paths))), ComparisonSettings(plan=False)).whole
        followed = [[run.value for run in trend("refunds", 9, of).runs] for of in ("pass rate", "mean score")]
        levels = (compared.before, compared.after)
        assert followed == [pytest.approx([one.rate for one in levels]), pytest.approx([one.score for one in levels])]
        for number, (path, level) in enumerate(zip(paths, levels, strict=True)):
            report = summed(path)
            assert (report.pass_rate, report.mean_score) == (pytest.approx(level.rate), pytest.approx(level.score))
            pages = shown(path, number)
            assert pages.rate == pytest.approx(report.pass_rate)
            assert pages.interval == close(report.pass_rate_interval)
            assert pages.bounds == close(report.pass_rate_bounds)
            assert (pages.judged, pages.clusters) == (report.judged, report.interval_clusters)
            (group,) = report.by_suite.values()
            assert (group.pass_rate, group.pass_rate_interval) == (report.pass_rate, report.pass_rate_interval)
            low, high = report.pass_rate_bounds
            assert low <= report.pass_rate + 1e-9
            assert report.pass_rate <= high + 1e-9


@LAW
@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_a_resumed_run_change_no_number(found, chance: random.Random):
    ended, _ = found
    shuffled = list(ended)
    chance.shuffle(shuffled)
    with TemporaryDirectory() as place:
        whole, other = Path(place) / "whole", Path(place) / "other"
        write_run(whole, ended)
        write_run(other, shuffled)
        assert summed(whole) == summed(other)


def test_a_case_counts_once_however_many_of_its_samples_were_judged(tmp_path):
    """Two views once showed 56.1% (of samples) and 56.6% (mean over cases) for the same run."""
    results = []
    for case, samples in enumerate(((1, 1, 1, 1), (1, 0, None, None), (0, None, None, None))):
        for number, passed in enumerate(samples, 1):
            status = "errored" if passed is None else "passed" if passed else "failed"
            given_ = trial(f"case-{case}", sample=number, repeat=4)
            results.append(finished(status, trial=given_, score=passed))
    path = tmp_path / "run"
    write_run(path, results)
    totals, _ = totals_of(path, read_document(path / "run.json"))
    assert totals.pass_rate == totals.mean_score == fmean((1, 1 / 2, 0))  # of 7 judged samples, 5 passed
    assert totals.pass_rate_bounds == (fmean((1, 1 / 4, 0)), fmean((1, 3 / 4, 3 / 4)))
    assert totals.judged == 7
