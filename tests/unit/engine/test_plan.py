from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.engine.draws import Draws
from agentv.engine.plan import Plan, PlanSettings, draw, every_case, trial_key
from agentv.model.suite.conversation import Link
from agentv.model.suite.suite import Case, RunSettings, Suite, TargetSpec
from agentv.model.values.message import Message
from agentv.stats.samples.betting import PairedBets
from doubles.trials import finished, trial

GPT, CLAUDE, JUDGE = (TargetSpec(name, "x", None) for name in ("gpt", "claude", "judge"))


def case(identity: str, **given) -> Case:
    return Case(identity, (Message("user", "hi"),), (), sha256=identity, **given)


def suite(*cases: Case, name: str = "suite", **given) -> Suite:
    return Suite(name, cases, targets=given.pop("targets", (GPT,)), **given)


def order(plan: Plan) -> list[tuple[str, str, int]]:
    return [(trial.target.name, trial.case.id, trial.sample) for trial in plan]


@pytest.mark.parametrize("flagged", [False, True])
def test_a_question_for_the_judge_is_asked_of_the_judge_alone_whatever_targets_are_named(flagged):
    asked = (case("q", asks_judge=True), case("a", target=CLAUDE))
    plan = Plan([suite(*asked, targets=(GPT, CLAUDE), judge=JUDGE)], PlanSettings(flagged_targets=flagged))
    assert [one for one in order(plan) if one[1] == "q"] == [("judge", "q", 1)]
    assert plan.counts() == ((2, 3) if flagged else (2, 2))


@pytest.mark.parametrize(
    ("flag", "own", "of_suite", "expected"),
    [
        (0.9, 0.5, 0.6, 0.9),
        (None, 0.5, 0.6, 0.5),
        (None, None, 0.6, 0.6),
        (None, None, None, 0.8),
        (0.0, 0.5, None, 0.0),
    ],
)
def test_threshold_flag_case_suite_default(flag, own, of_suite, expected):
    (trial,) = Plan([suite(case("a", threshold=own), threshold=of_suite)], PlanSettings(threshold=flag))
    assert trial.threshold == expected


@pytest.mark.parametrize(
    ("flag", "own", "of_target", "of_suite", "expected"),
    [
        (1, 2, 3, 4, 1),
        (None, 2, 3, 4, 2),
        (None, None, 3, 4, 3),
        (None, None, None, 4, 4),
        (None, None, None, None, 300),
    ],
)
def test_timeout_flag_case_target_suite_default(flag, own, of_target, of_suite, expected):
    target = replace(GPT, timeout_s=of_target)
    subject = suite(case("a", timeout_s=own), targets=(target,), run=RunSettings(timeout_s=of_suite))
    (trial,) = Plan([subject], PlanSettings(timeout_s=flag))
    assert trial.timeout_s == expected


def test_repeat_flag_case_suite():
    cases = (case("a", repeat=3), case("b"))
    assert Plan([suite(*cases, run=RunSettings(repeat=2))], PlanSettings()).counts() == (2, 5)
    assert Plan([suite(*cases)], PlanSettings(repeat=4)).counts() == (2, 8)


def test_keys_tell_everything_apart_that_determines_the_outcome():
    (one,) = Plan([suite(case("a"))], PlanSettings())
    others = [
        replace(one, case=case("b")),
        replace(one, target=CLAUDE),
        replace(one, target=replace(GPT, fingerprint="other")),
        replace(one, suite=suite(case("a"), name="other")),
        replace(one, judge=JUDGE),
        replace(one, judge=replace(JUDGE, fingerprint="other")),
        replace(one, threshold=1.0),
        replace(one, repeat=2),
        replace(one, aggregate="pass_any"),
    ]
    assert len({trial_key(trial) for trial in (one, *others)}) == 10
    assert trial_key(replace(one, timeout_s=1.0, sample=2)) == trial_key(one)
    assert len({trial.key for trial in Plan([suite(case("a"))], PlanSettings(repeat=3))}) == 3


def linked(*cases: Case, needs: dict[str, str]) -> Suite:
    return suite(*cases, links={one: Link((needed,)) for one, needed in needs.items()})


def test_chosen_cases_bring_along_what_they_need():
    several = linked(*map(case, "abcdef"), needs={"a": "d", "d": "c", "f": "e"})
    plan = Plan([several], PlanSettings(chosen=lambda one: one.id in "ab"))
    assert [one for _, one, _ in order(plan)] == ["a", "b", "c", "d"]
    assert plan.counts() == (4, 4)
    assert list(plan.added_dependencies()) == ["c", "d"]


def test_a_limit_brings_along_what_the_first_ones_need():
    plan = Plan([linked(*map(case, "abcd"), needs={"a": "d"})], PlanSettings(limit=2))
    assert [one for _, one, _ in order(plan)] == ["a", "b", "d"]
    assert list(plan.added_dependencies()) == ["d"]


PROMPTS = {"brief": "Brief one", "long": None}


def prompted(*ids: str) -> list[Case]:
    return [case(identity, prompt_id=prompt) for identity in ids for prompt in PROMPTS]


@pytest.mark.parametrize("name", ["brief", "Brief one"])
def test_a_prompt_is_chosen_by_its_id_or_label_and_cases_without_prompts_do_not_run(name):
    suites = [suite(*prompted("a", "b"), prompts=PROMPTS), suite(case("c"), name="other")]
    plan = Plan(suites, PlanSettings(prompts=(name,)))
    assert [(trial.case.id, trial.case.prompt_id) for trial in plan] == [("a", "brief"), ("b", "brief")]
    assert (plan.counts(), plan.whole.counts()) == ((2, 2), (3, 5))


@pytest.mark.parametrize(
    "settings", [{}, {"limit": 7}, {"chosen": lambda case: case.id in {"c0", "c2", "c4", "c8", "d1", "d5"}}]
)
@pytest.mark.parametrize("of", [1, 2, 3, 5, 30])
def test_shards_are_even_parts_of_the_selected_cases_and_keep_dependent_cases_together(of, settings):
    links = {"c3": Link(depends_on=("c0",)), "c4": Link(depends_on=("c3",))}
    suites = [
        suite(*(case(f"d{at}") for at in range(8)), name="other"),
        suite(*prompted(*(f"c{at}" for at in range(9))), prompts=PROMPTS, links=links),
    ]
    whole = Plan(suites, PlanSettings(**settings))
    shards = [whole.sharded(at, of) for at in range(1, of + 1)]
    keys = [{trial.key for trial in shard} for shard in shards]
    assert (sum(map(len, keys)), set().union(*keys)) == (sum(1 for _ in whole), {trial.key for trial in whole})
    ids = [{trial.case.id for trial in shard} for shard in shards]
    assert all(len(one & {"c0", "c3", "c4"}) in (0, 3) for one in ids)
    sizes = [len(one - {"c3", "c4"}) for one in ids]  # c3 and c4 count as one case with c0
    assert max(sizes) - min(sizes) <= 1
    for shard in shards:  # each shard's suite contains only its planned cases
        planned = [case.id for suite in suites for case, _, _ in shard.planned(suite)]
        assert planned == [case.id for _, case, _, _ in shard.planned_cases()]


def test_a_shuffled_order_depends_on_its_seed_and_keeps_samples_together():
    ids = [f"c{at}" for at in range(20)]
    plan = Plan([suite(*map(case, ids), targets=(GPT, CLAUDE))], PlanSettings(repeat=2, shuffle=1))
    assert order(plan) == order(plan)
    assert sorted(order(plan)) == sorted(order(Plan(plan.suites, PlanSettings(repeat=2))))
    assert order(plan) != order(Plan(plan.suites, replace(plan.settings, shuffle=2)))
    assert [trial.sample for trial in plan] == [1, 2] * 40
    fewer = Plan([suite(*map(case, ids[3:]), targets=(GPT, CLAUDE))], plan.settings)
    assert order(fewer) == [one for one in order(plan) if one[1] in ids[3:]]


ids = st.lists(st.text(max_size=3), unique=True, max_size=40)


def sampled_suite(names, path="/repo/a.eval.yaml", prompts=(None,)) -> Suite:
    cases = tuple(Case(name, (Message("user", "hi"),), (), prompt_id=one) for name in names for one in prompts)
    return Suite("s", cases, path=path, targets=(TargetSpec("echo", "x", None),))


def drawn(suites, number, *, seed=1, root="/repo", chosen=every_case, limit=None) -> list[str]:
    sample = draw(suites, chosen, number, seed=seed, root=root)
    plan = Plan(suites, PlanSettings(chosen=chosen, sample=sample, limit=limit))
    found = [case.id for _, case, _, _ in plan.planned_cases()]
    assert plan.counts() == (len(found), len(found))
    assert sample.size == len(set(found)) or limit is not None
    return found


@given(ids, st.integers(1, 50), st.integers())
def test_as_many_as_asked_for_or_all(names, number, seed):
    found = drawn([sampled_suite(names)], number, seed=seed)
    assert len(found) == min(number, len(names))
    assert set(found) <= set(names)


@given(ids, st.integers(1, 50), st.integers(), st.randoms())
def test_the_order_of_the_file_does_not_matter(names, number, seed, random):
    shuffled = random.sample(names, len(names))
    shown = set(drawn([sampled_suite(names)], number, seed=seed))
    assert shown == set(drawn([sampled_suite(shuffled)], number, seed=seed))


@given(ids, st.text(min_size=4, max_size=4), st.integers(1, 50), st.integers())
def test_a_case_more_replaces_at_most_one(names, added, number, seed):
    before = set(drawn([sampled_suite(names)], number, seed=seed))
    after = set(drawn([sampled_suite([*names, added])], number, seed=seed))
    assert len(before - after) <= 1
    assert after - before <= {added}


@given(ids, st.integers(1, 20), st.integers())
def test_a_larger_sample_holds_the_smaller_one(names, number, seed):
    shown = set(drawn([sampled_suite(names)], number, seed=seed))
    assert shown <= set(drawn([sampled_suite(names)], number + 3, seed=seed))


def test_every_case_is_drawn_equally_often():
    names = [str(number) for number in range(20)]
    often = Counter(name for seed in range(2000) for name in drawn([sampled_suite(names)], 5, seed=seed))
    assert set(often) == set(names)
    assert all(400 < count < 600 for count in often.values()), often  # 500 expected, standard deviation 19


def test_a_case_is_drawn_with_all_its_prompts_and_counts_once():
    found = drawn([sampled_suite([str(number) for number in range(10)], prompts=("brief", "long", "odd"))], 2)
    assert sorted(Counter(found).values()) == [3, 3]


BASE = {("s", f"c{number}", None): (1.0, 1.0) for number in range(30)}


def trials(count=30, group=1, repeat=1):
    for number in range(count):
        for sample in range(1, repeat + 1):
            key = f"{number}-{sample}"
            yield ("s", f"c{number}", None), number // group, replace(trial(), key=key, sample=sample)


def draws_drawn(seed=1, **more):
    return Draws(trials(**more), BASE, PairedBets(), "base", seed)


def ended(one, status):
    return replace(finished(status), trial=one)


def test_the_order_follows_from_the_seed_and_from_nothing_else():
    assert [one.key for one in draws_drawn().trials] == [one.key for one in draws_drawn().trials]
    assert [one.key for one in draws_drawn(seed=2).trials] != [one.key for one in draws_drawn().trials]
    fewer = [one.key for one in draws_drawn(count=20).trials]
    assert [one.key for one in draws_drawn().trials if one.key in fewer] == fewer


def test_what_ends_sooner_does_not_count_sooner():
    # twenty failures come in first: nothing is reported before the passes drawn ahead of them are in
    late = draws_drawn(seed=3)
    ahead, others = late.trials[:5], late.trials[5:25]
    for one in others:
        assert not late.add(ended(one, "failed"))
    assert (late.drawn, late.decided) == (0, False)
    for one in ahead:
        late.add(ended(one, "passed"))
    in_order = draws_drawn(seed=3)
    for one in in_order.trials[:25]:
        in_order.add(ended(one, "passed" if one.key in {before.key for before in ahead} else "failed"))
    assert (late.drawn, late.bets.claim) == (in_order.drawn, in_order.bets.claim)
    assert late.bets.claim == "worse"


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_dependent_cases_and_samples_are_one_bet_when_all_of_them_ended(order):
    draws = draws_drawn(count=1, repeat=3)
    statuses = ("passed", "failed", "errored")
    for place in order[:-1]:
        draws.add(ended(draws.trials[place], statuses[place]))
        assert draws.drawn == 0
    draws.add(ended(draws.trials[order[-1]], statuses[order[-1]]))
    assert (draws.drawn, draws.errored) == (1, 1)
    (((low, _), _),), (((high, _), _),) = (tuple(one.items()) for one in (draws.bets.low, draws.bets.high))
    assert (low, high) == (pytest.approx(1 / 3 - 1), pytest.approx(2 / 3 - 1))
    clustered = draws_drawn(count=6, group=3)
    for one in clustered.trials[:3]:
        clustered.add(ended(one, "failed"))
    assert (clustered.drawn, clustered.bets.drawn) == (3, 1)


def test_cases_that_the_base_lacks_are_drawn_and_in_no_number():
    draws = Draws(trials(), {key: bounds for key, bounds in BASE.items() if key[1] != "c0"}, PairedBets(), "base", 1)
    assert (draws.cases, draws.unpaired, len(draws.trials)) == (29, 1, 30)
    for one in draws.trials:
        draws.add(ended(one, "passed"))
    assert (draws.drawn, draws.decided) == (29, False)
