"""Which cases a sample draws."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from agentv.engine.plan import Plan, PlanSettings, draw, everyone
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.message import Message

TARGET = TargetSpec("echo", "x", None)
ids = st.lists(st.text(max_size=3), unique=True, max_size=40)


def suite(names, path="/repo/a.eval.yaml", prompts=(None,)) -> Suite:
    cases = tuple(Case(name, (Message("user", "hi"),), (), prompt_id=one) for name in names for one in prompts)
    return Suite("s", cases, path=path, targets=(TARGET,))


def drawn(suites, number, *, seed=1, root="/repo", chosen=everyone, limit=None) -> list[str]:
    sample = draw(suites, chosen, number, seed=seed, root=root)
    plan = Plan(suites, PlanSettings(chosen=chosen, sample=sample, limit=limit))
    found = [case.id for _, case, _, _ in plan.planned_cases()]
    assert plan.counts() == (len(found), len(found))
    assert sample.size == len(set(found)) or limit is not None
    return found


@given(ids, st.integers(1, 50), st.integers())
def test_as_many_as_asked_for_or_all(names, number, seed):
    found = drawn([suite(names)], number, seed=seed)
    assert len(found) == min(number, len(names))
    assert set(found) <= set(names)


@given(ids, st.integers(1, 50), st.integers(), st.randoms())
def test_the_order_of_the_file_does_not_matter(names, number, seed, random):
    shuffled = random.sample(names, len(names))
    assert set(drawn([suite(names)], number, seed=seed)) == set(drawn([suite(shuffled)], number, seed=seed))


@given(ids, st.text(min_size=4, max_size=4), st.integers(1, 50), st.integers())
def test_a_case_more_replaces_at_most_one(names, added, number, seed):
    before = set(drawn([suite(names)], number, seed=seed))
    after = set(drawn([suite([*names, added])], number, seed=seed))
    assert len(before - after) <= 1
    assert after - before <= {added}


@given(ids, st.integers(1, 20), st.integers())
def test_a_larger_sample_holds_the_smaller_one(names, number, seed):
    assert set(drawn([suite(names)], number, seed=seed)) <= set(drawn([suite(names)], number + 3, seed=seed))


def test_every_case_is_drawn_equally_often():
    names = [str(number) for number in range(20)]
    often = Counter(name for seed in range(2000) for name in drawn([suite(names)], 5, seed=seed))
    assert set(often) == set(names)
    assert all(400 < count < 600 for count in often.values()), often  # 500 expected, 19 is one standard deviation


def test_a_case_is_drawn_with_all_its_prompts_and_counts_once():
    names = [str(number) for number in range(10)]
    found = drawn([suite(names, prompts=("brief", "long", "odd"))], 2)
    assert sorted(Counter(found).values()) == [3, 3]
