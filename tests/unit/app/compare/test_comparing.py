from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv.app.compare.comparing import CompareRequest, compare, compare_each, moved_cases
from agentv.app.compare.gathering import differences
from agentv.errors import UsageError
from agentv.model.run.comparison import CaseKey, CaseOutcome, CasePair, Comparison, ComparisonSettings, Matrix
from agentv.model.run.grade import Check
from agentv.model.suite.workspace import Variant
from agentv.stats.verdicts import Settings, same_rate, same_rule
from doubles.judged_runs import judged_run
from doubles.read_files import bytes_read
from doubles.stored_runs import scored_trials, write_run, write_summary
from doubles.trials import errored_score, finished, graded, scored, trial

GOOD = {f"case-{number}": 1.0 for number in range(8)}
BAD = {name: 0.1 * number for number, name in enumerate(GOOD)}


@pytest.fixture
def store(tmp_path, monkeypatch):
    (tmp_path / ".agentv").mkdir()
    monkeypatch.chdir(tmp_path)
    return lambda name, results, **record: write_run(tmp_path / name, results, record)


@pytest.fixture
def runs(store):
    return store("base", scored_trials(GOOD)), store("candidate", scored_trials(BAD))


def compared(*runs, targets=(), partial=False, **question) -> Comparison:
    return compare(CompareRequest(runs, targets, partial), ComparisonSettings(**question))


def matrix(*runs, **question) -> Matrix:
    return compare(CompareRequest(runs), ComparisonSettings(**question))


def refused(*runs, **given):
    with pytest.raises(UsageError) as error:
        compared(*runs, **given)
    return str(error.value), error.value.hint


def test_a_worse_candidate_is_shown_to_be_worse_with_its_cases_worst_first(runs):
    found = compared(*runs)
    assert (found.whole.verdict, found.shown_worse, len(found.lost)) == ("worse", True, 8)
    assert [one.pair.delta for one in found.moved] == sorted(one.pair.delta for one in found.moved)
    assert (found.moved[0].before.output, found.moved[0].after.output) == ("case-0: 1.0", "case-0: 0.0")
    assert (found.base.run_id, found.base.targets, found.base.cases) == ("base", ("gpt",), 8)


def test_the_other_way_round_it_is_better(runs):
    base, candidate = runs
    assert (compared(candidate, base).whole.verdict, compared(candidate, base).shown_worse) == ("better", False)


def test_a_run_compared_with_itself_is_no_different(runs):
    found = compared(runs[1], runs[1])
    assert (found.same, found.whole.verdict, found.moved, found.shown_worse) == (True, "equivalent", (), False)


def test_of_a_trial_that_was_done_again_the_newest_row_counts(store):
    again = store("b", [*scored_trials({"case-0": 0.0}), *scored_trials(GOOD)])
    found = compared(store("a", scored_trials(GOOD)), again)
    assert (found.whole.moves.losses, found.moved) == (0, ())


def test_one_run_with_one_of_each_is_refused(runs):
    message, hint = refused(runs[0])
    assert message == "the run base has one target, one prompt and no variants to compare"
    assert hint == "compare it with another run: agentv compare BASE CANDIDATE"
    shown = refused(runs[0], targets=("gpt",))[1]
    assert shown == "to compare two targets, name both: --target BASE --target CANDIDATE"
    assert refused(runs[0], by="target")[0] == "the run base has one target, 'gpt'"
    assert refused(runs[0], by="variant")[0] == "the run base has no variants"
    for by in ("suite", "tag"):
        assert refused(runs[0], by=by)[0] == f"--by {by} needs two runs"
    assert refused(*runs, by="prompt")[0] == "--by prompt compares the prompts of one run"
    assert refused(*runs, by="target")[0] == "--by target compares the targets of one run"
    assert refused(runs[0], targets=("gtp", "gpt"))[1] == "did you mean 'gpt'?"


def test_targets_and_prompts_of_one_run_are_each_compared_with_the_first(store):
    results = [
        *scored_trials(GOOD, target="gpt", prompt_id="brief"),
        *scored_trials(GOOD, target="gpt", prompt_id="long"),
        *scored_trials(BAD, target="claude", prompt_id="brief"),
        *scored_trials(BAD, target="claude", prompt_id="long"),
    ]
    run = store("both", results, suites=[{"targets": [{"name": "gpt"}, {"name": "claude"}]}])
    found = compare(CompareRequest((run,)), ComparisonSettings())
    told = [(one.by, one.base, one.candidate, one.verdict, one.cases, one.pairs) for one in found.comparisons]
    assert told == [("target", "gpt", "claude", "worse", 8, 16), ("prompt", "brief", "long", "inconclusive", 8, 16)]
    assert (found.shown_worse, found.graded, found.meets("better"), len(found.lost[0])) == (True, True, False, 16)
    two = compare(CompareRequest((run,), ("claude", "gpt")), ComparisonSettings())
    assert (two.base.targets, two.whole.pairs, two.whole.verdict) == (("claude",), 16, "better")
    three = matrix(store("three", [*results, *scored_trials(GOOD, target="x", prompt_id="long")]), by="target")
    assert set(three.comparisons) == {(0, 1), (0, 2), (1, 2)}
    with pytest.raises(UsageError, match="'customer' in their metadata"):
        compare(CompareRequest((run,)), ComparisonSettings(cluster="customer"))


def test_of_several_targets_of_a_run_those_are_compared_that_are_named(store):
    scores = {"a": GOOD, "b": BAD, "c": GOOD, "d": BAD}
    run = store("run", [one for target, given in scores.items() for one in scored_trials(given, target=target)])
    found = compare(CompareRequest((run,), ("c", "a", "d")), ComparisonSettings())
    assert [(one.base, one.candidate) for one in found.comparisons] == [("c", "a"), ("c", "d")]
    assert found.run.targets == ("a", "c", "d")


def test_runs_without_a_common_case_are_refused_with_what_they_hold(runs, store):
    other = store("other", scored_trials({"x": 1.0}, suite="orders", target="claude"))
    message, hint = refused(runs[0], other)
    assert message == "base and other have no case in common"
    assert hint == "one run has the suite refunds on gpt; the other has the suite orders on claude"


def test_runs_whose_common_cases_were_all_edited_are_refused_unless_that_is_asked_for(runs, store):
    other = store("other", scored_trials({**GOOD, "new": 1.0}, sha256="e" * 64))
    message, hint = refused(runs[0], other)
    assert message == "every case that base and other have in common was edited between them (text)"
    assert "--edited" in hint
    assert compared(runs[0], other, edited=True).edited == 8


@pytest.mark.parametrize(
    "question",
    [{"margin": -0.01}, {"margin": 1.01}, {"margin": float("nan")}]
    + [{"alpha": alpha} for alpha in (0.0, 1.0, -0.05, 1.2, float("nan"))],
)
def test_a_margin_or_an_alpha_that_is_none_is_refused(runs, question):
    assert refused(*runs, **question)[0].endswith("both must be between 0 and 1")


def test_a_run_that_holds_nothing_is_refused(runs, store):
    message, _ = refused(runs[0], store("empty", []))
    assert message == "nothing to compare: the run empty has no finished trials"


@pytest.mark.parametrize("place", [0, 1])
def test_a_run_that_ended_once_its_comparison_was_decided_is_refused(runs, place):
    write_summary(Path(runs[place]), {"cut": "decided"})
    name = ("base", "candidate")[place]
    message, _ = refused(*runs)
    assert message == f"the run {name} stopped once its comparison was decided: it is too short to compare"


def test_errored_pairs_are_left_out_and_told(runs, store):
    broken = [finished("errored", trial=one.trial) for one in scored_trials({"case-0": 0.0, "case-1": 0.0})]
    good = scored_trials({name: score for name, score in GOOD.items() if name not in ("case-0", "case-1")})
    found = compared(runs[0], store("other", [*broken, *good]))
    assert (found.whole.pairs, found.whole.moves.ties) == (6, 6)
    assert [key.case_id for key in found.left_out.errored] == ["case-0", "case-1"]


def test_where_every_pair_errored_there_is_no_verdict(runs, store, tmp_path):
    found = compared(runs[0], store("other", [finished("errored", trial=one.trial) for one in scored_trials(GOOD)]))
    assert (found.whole, found.shown_worse, found.groups) == (None, False, ())
    other = compared(str(tmp_path / "other"), str(tmp_path / "other"))
    assert (other.same, other.whole) == (True, None)


def test_errors_that_could_decide_a_comparison_withhold_its_verdict(store):
    scores = {f"case-{number}": float(number >= 10) for number in range(80)}
    fixed = dict.fromkeys(list(scores)[:70], 1.0)
    base, candidate = store("x", scored_trials(scores)), [*scored_trials(fixed), *errors(list(scores)[70:])]
    found = compared(base, store("y", candidate)).whole
    assert (found.verdict, found.withheld, found.errored, found.pairs) == ("inconclusive", "errors", 10, 70)
    low, high = found.score.bounds
    assert (low, high) == (0.0, pytest.approx(0.125))
    assert compared(base, store("z", scored_trials(fixed))).whole.verdict == "better"
    assert compared(base, str(Path(base).parent / "y"), errored="drop").whole.verdict == "better"


def errors(names):
    return [finished("errored", trial=one.trial) for one in scored_trials(dict.fromkeys(names, 0.0))]


def test_samples_of_a_case_are_one_observation(store):
    def run(name, *scores):
        return store(
            name,
            [
                replace(one, trial=trial("a", sample=number, repeat=3))
                for number, one in enumerate((scored_trials({"a": score})[0] for score in scores), 1)
            ],
        )

    found = compared(run("base", 1.0, 0.9, 0.8), run("candidate", 0.0, 0.3, 0.6))
    assert (found.whole.pairs, found.whole.score.delta) == (1, pytest.approx(-0.6))
    assert (found.moved[0].before.sample, found.moved[0].after.sample) == (1, 1)


def test_suites_are_compared_apart_with_their_p_values_corrected(store):
    def run(name, orders):
        return store(name, [*scored_trials(GOOD), *scored_trials(orders, suite="orders")])

    found = compared(run("base", GOOD), run("candidate", BAD), by="suite")
    orders, refunds = found.groups
    shown = (orders.name, orders.judgement.verdict, refunds.name, refunds.judgement.verdict)
    assert shown == ("orders", "worse", "refunds", "inconclusive")
    assert (orders.judgement.tested, orders.judgement.score.level) == (2, 0.95)
    assert orders.judgement.score.p == pytest.approx(found.whole.score.p), "nothing moved in the other suite"


def test_a_group_that_is_shown_worse_is_a_regression_though_the_whole_is_not(store):
    def run(name, few, many):
        return store(name, [*scored_trials(few, suite="few"), *scored_trials(many, suite="many")])

    better = {f"m{number}": 0.5 for number in range(40)}
    found = compared(run("base", GOOD, better), run("candidate", BAD, dict.fromkeys(better, 0.9)), by="suite")
    assert (found.whole.verdict, found.shown_worse) == ("better", True)


def test_variants_of_two_runs_are_compared_apart_and_cases_without_one_in_none_of_them(store):
    def run(name, scores):
        bare, plain = (
            scored_trials({f"bare-{n}": 1.0 for n in range(8)}, variant=Variant("bare")),
            scored_trials({"plain": 1.0}),
        )
        return store(name, [*bare, *scored_trials(scores, variant=Variant("with-skill")), *plain])

    found = compared(run("base", GOOD), run("candidate", BAD), by="variant")
    shown = [(one.name, one.judgement.pairs, one.judgement.verdict) for one in found.groups]
    assert shown == [("bare", 8, "inconclusive"), ("with-skill", 8, "worse")]


def test_targets_of_one_run_without_a_common_case_are_refused(store):
    run = store("run", [one for target in "xyz" for one in scored_trials({f"only-{target}": 1.0}, target=target)])
    assert refused(run) == (
        "the targets, prompts and variants of the run run have no case in common",
        "only results of the same case are compared",
    )


def test_runs_without_tags_cannot_be_compared_by_tag(runs):
    message, _ = refused(*runs, by="tag")
    assert message == "nothing to compare by tag: no case graded in both runs has a tag"


def test_one_target_of_a_run_is_compared_with_another(store):
    both = store("both", [*scored_trials(GOOD, target="gpt"), *scored_trials(BAD, target="claude")])
    found = compared(both, both, targets=("gpt", "claude"))
    assert (found.same, found.whole.verdict, found.candidate.targets) == (False, "worse", ("claude",))
    assert compared(both, both, targets=("gpt",)).same


def test_a_target_that_a_run_does_not_hold_is_told_with_the_nearest(runs):
    message, hint = refused(*runs, targets=("gtp",))
    assert (message, hint) == ("the run base has no case on the target 'gtp'", "did you mean 'gpt'?")
    message, hint = refused(*runs, targets=("a", "b", "c"))
    assert message == "3 targets were given for 2 runs"


def test_three_runs_are_compared_each_with_each(runs, store):
    found = matrix(*runs, store("third", scored_trials(GOOD)))
    verdicts = {place: one.whole.verdict for place, one in found.comparisons.items()}
    assert verdicts == {(0, 1): "worse", (0, 2): "inconclusive", (1, 2): "better"}
    assert found.comparisons[0, 1].whole.tested == 4  # two measures each; one of them never changes between equal runs
    assert [one.candidate.run_id for one in found.against_base] == ["candidate", "third"]
    assert found.scores[CaseKey("refunds", "case-0", None, "gpt")] == (1.0, 0.0, 1.0)
    assert next(iter(found.scores)).case_id == "case-0"


def test_a_matrix_may_hold_runs_that_share_cases_with_the_base_alone(store):
    base = store("base", scored_trials({"a": 1.0, "b": 1.0}))
    found = matrix(base, store("one", scored_trials({"a": 1.0})), store("two", scored_trials({"b": 0.0})))
    assert set(found.comparisons) == {(0, 1), (0, 2)}


def test_parts_of_a_matrix_are_refused(runs):
    with pytest.raises(UsageError, match="--by compares two runs only"):
        compare(CompareRequest((*runs, runs[0])), ComparisonSettings(by="suite"))


def test_of_a_run_that_was_cut_off_it_is_known_how_much_is_missing(store):
    whole = store("whole", scored_trials(GOOD), planned={"cases": 8})
    cut = store("cut", scored_trials(GOOD), planned={"cases": 20})
    found = compared(whole, cut)
    assert (found.base.missing, found.candidate.missing) == (0, 12)
    assert compared(cut, cut, targets=("gpt",)).base.missing == 12


def with_customers(scores, customers):
    return [
        replace(one, metadata={"customer": customer} if customer else {})
        for one, customer in zip(scored_trials(scores), customers, strict=True)
    ]


def test_cases_are_dependent_by_a_key_of_their_metadata(store):
    customers = ["a", "a", "a", "b", "b", "b", "c", "d"]
    base, candidate = (store(name, with_customers(scores, customers)) for name, scores in (("x", GOOD), ("y", BAD)))
    found = compared(base, candidate, cluster="customer")
    assert (found.whole.clusters, found.whole.pairs, found.whole.verdict) == (4, 8, "inconclusive")


@pytest.mark.parametrize(("lacking", "said"), [(8, "'case-0'"), (2, "'case-6'")])
def test_a_key_that_some_cases_lack_is_refused(store, lacking, said):
    customers = ["a"] * (8 - lacking) + [None] * lacking
    runs = (store(name, with_customers(scores, customers)) for name, scores in (("x", GOOD), ("y", BAD)))
    message = refused(*runs, cluster="customer")[0]
    assert message == f"{lacking} of 8 cases have no 'customer' in their metadata; the first is {said} of refunds"


def test_several_candidates_are_compared_with_one_base_as_each_alone(runs, store):
    base, worse = runs
    other_target = store("other", [finished(trial=trial("case-1", target="claude"), scores=[])])
    elsewhere = store("elsewhere", [finished(trial=trial("x", suite="elsewhere"))])
    two_suites = store("two", [*scored_trials(GOOD), finished(trial=trial("case-1", suite="elsewhere"))])
    candidates = [worse, base, elsewhere, other_target, two_suites, str(store("empty", []))]
    each = compare_each(base, candidates, ComparisonSettings(limit=3))
    for candidate, found in zip(candidates, each, strict=True):
        if isinstance(found, UsageError):
            assert refused(base, candidate, partial=True) == (str(found), found.hint)
            continue
        alone = compared(base, candidate, partial=True, limit=3)
        assert list(found.pairs) == list(alone.pairs)
        assert replace(found, pairs=alone.pairs) == alone
    assert [isinstance(one, UsageError) for one in each] == [False, False, True, False, False, True]
    of_nothing = compare_each("nothing", [worse, base], ComparisonSettings())
    assert len({str(one) for one in of_nothing}) == 1
    assert all("nothing" in str(one) for one in of_nothing)


def test_a_base_is_read_once_however_many_candidates_there_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = judged_run(tmp_path, [True] * 300, run="20261121T140322Z-aaaa", answer="{} " + "answer " * 300)
    small = [judged_run(tmp_path, [False] * 3, run=f"2026112{day}T140322Z-bbbb") for day in range(2, 6)]
    question = ComparisonSettings(limit=0)
    compare_each(base, small[:1], question)  # warm up imports
    one = bytes_read(lambda: compare_each(base, small[:1], question))
    four = bytes_read(lambda: compare_each(base, small, question))
    assert one > (tmp_path / ".agentv" / "results" / base / "index.jsonl").stat().st_size
    assert four < 1.5 * one


KEY = CaseKey("refunds", "case-1", None, "gpt")


def outcome(score, places):
    return CaseOutcome("passed" if score >= 0.8 else "failed", score, len(places), 0.8, 1, 1, 1, places=places)


def pair(before, after, places=(1,), case_id="case-1"):
    key = KEY._replace(case_id=case_id)
    return CasePair(key, key, outcome(before, places), outcome(after, places))


def run(results):
    """Return what reads the rows of a run with these results, which are numbered in order."""
    return lambda places: [results[number - 1] for number in places]


def changes(before, after):
    (found,) = moved_cases([pair(1, 0)], run([finished(scores=before)]), run([finished("failed", scores=after)]))
    return found.changes


def sampled(*scores):
    return [
        finished("passed" if score >= 0.8 else "failed", trial=trial(sample=number, repeat=3), score=score)
        for number, score in enumerate(scores, 1)
    ]


@pytest.mark.parametrize(("scores", "shown"), [((0.9, 0.3), (1.0, 0.1)), ((0.3, 0.9), (0.9, 1.0))])
def test_of_several_samples_those_are_shown_that_are_furthest_apart(scores, shown):
    samples = sampled(0.9, 1.0, 0.9), sampled(0.5, 0.1, 1.0)
    (found,) = moved_cases([pair(*scores, places=(1, 2, 3))], *map(run, samples))
    assert (found.before.score, found.after.score) == shown


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (("failed", 0.9), ("passed", 0.5), (0.9, 1.0)),
        (("passed", 0.5), ("failed", 0.9), (1.0, 0.1)),
        (("passed", 0.9), ("passed", 0.8), (1.0, 0.1)),
        (("passed", 0.8), ("passed", 0.9), (0.9, 1.0)),
    ],
)
def test_a_verdict_that_changed_decides_which_samples_are_shown_else_the_score(before, after, shown):
    """A case with a lower score may pass, because of a gate or a lower threshold."""
    samples = sampled(0.9, 1.0, 0.9), sampled(0.5, 0.1, 1.0)
    places = (1, 2, 3)
    sides = [CaseOutcome(status, score, 3, 0.8, 1, 1, 1, places=places) for status, score in (before, after)]
    (found,) = moved_cases([CasePair(KEY, KEY, *sides)], *map(run, samples))
    assert (found.before.score, found.after.score) == shown


def test_an_assertion_says_why_by_its_error_else_its_first_check_that_agrees_with_it_else_its_reason():
    (broke,) = changes([scored(True)], [errored_score()])
    checks = (Check("is short", True), Check("is kind", False, "calls the user names"), Check("is right", False))
    (failed,) = changes([graded(1.0, True)], [graded(0.2, False, *checks)])
    assert broke.evidence == "the script ended with status 2"
    assert failed.evidence == "calls the user names"


CASE = CaseOutcome("passed", 1.0, 1, 0.8, 1, 1, 1)


def compare_pair(number, after=CASE, before=CASE):
    key = CaseKey("refunds", f"case-{number}", None, "gpt")
    return CasePair(key, key, before, after)


def setting_notes(pairs):
    settings = Settings()
    for one in pairs:
        settings.add(one)
    return settings.notes()


def test_it_is_told_that_verdicts_are_compared_where_samples_ended_early():
    until = replace(CASE, repeat=30, alpha=0.05)
    first, second = setting_notes([compare_pair(1, until), compare_pair(2)])
    assert first == (
        "the repeat differs in 1 of 2 cases (1 → at most 30 until decided at 0.05); case verdicts are not compared"
    )
    assert second.startswith("1 of 2 cases were sampled until decided")
    (only,) = setting_notes([compare_pair(1, until, until)])
    assert only.startswith("1 of 1 cases were sampled until decided")
    assert only.endswith("so their verdicts are compared instead, as 1 or 0")
    *_, mixed = setting_notes([compare_pair(1, until, until), compare_pair(2, until, replace(until, repeat=10))])
    assert mixed.startswith("2 of 2 cases were sampled until decided")
    assert mixed.endswith("as 1 or 0, which requires the same rule in both runs")


def test_samples_are_compared_by_rate_though_there_are_more_of_them_and_not_by_another_threshold():
    before, after = replace(CASE, repeat=1), replace(CASE, repeat=5)
    assert (same_rate(compare_pair(1, after, before)), same_rule(compare_pair(1, after, before))) == (True, False)
    assert not same_rate(compare_pair(1, replace(CASE, threshold=0.5)))
    assert not same_rate(compare_pair(1, replace(CASE, repeat=30, alpha=0.05)))
    assert same_rate(compare_pair(1))
    assert same_rule(compare_pair(1))


RECORD = {"agentv": "0.1", "settings": {"judge": None}, "suites": [{"judge": "gpt"}, {"judge": "gpt"}, {"judge": None}]}


def test_another_judge_is_told_and_a_forced_one_wins():
    assert list(differences(RECORD, {**RECORD, "settings": {"judge": "opus"}})) == ["the judge differs: gpt → opus"]
    assert list(differences(RECORD, {**RECORD, "suites": []})) == ["the judge differs: gpt → none named"]
