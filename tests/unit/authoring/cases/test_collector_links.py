"""Which cases depend on which others."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.cases.collector import Links, circles
from agentv.authoring.source.report import Report
from agentv.model.suite.conversation import Dependency, Link
from agentv.model.suite.suite import Case


def links_of(*cases: Case, **given) -> tuple[dict[str, Link], Report]:
    links, report = Links(**given), Report()
    for case in cases:
        links.note(case, report)
    ids = [case.id for case in cases]
    return links.checked(lambda one: one in ids, lambda: ids, report), report


def case(identity: str, *needs: str, **given) -> Case:
    return Case(identity, (), (), depends_on=tuple(Dependency(one) for one in needs), sha256=identity, **given)


def test_only_cases_that_hang_on_others_have_links():
    links, report = links_of(case("a"), case("b", "a"), case("c", conversation_id="x"), case("d", conversation_id="x"))
    assert report.diagnostics == ()
    assert links.keys() == {"b", "d"}
    assert links["b"].needs == ("a",)
    assert (links["d"].follows, links["d"].needs) == ("c", ("c",))


def test_what_came_before_in_a_conversation_is_part_of_its_story():
    def stories(*hashes: str) -> list[str]:
        cases = [Case(str(place), (), (), conversation_id="x", sha256=one) for place, one in enumerate(hashes)]
        return [link.story for link in links_of(*cases)[0].values()]

    assert stories("a", "b", "c") == stories("a", "b", "d")
    assert stories("a", "b", "c")[1] != stories("other", "b", "c")[1]
    assert stories("a", "b", "c")[0] != stories("a", "b", "c")[1]


@pytest.mark.parametrize("given", [{"unread": {"gone"}}, {"lost": True}])
def test_an_id_of_a_case_that_is_wrong_itself_is_not_unknown_too(given):
    assert links_of(case("a", "gone"), **given)[1].diagnostics == ()
    assert [one.code for one in links_of(case("a", "gone"))[1].diagnostics] == ["unknown-case"]


def test_many_unknown_ids_are_counted():
    _, report = links_of(*[case(str(number), f"gone-{number}") for number in range(150)])
    assert len(report.diagnostics) == 101
    assert any("lists 150 ids that do not exist; showing the first 100" in one.message for one in report.diagnostics)


def test_a_circle_of_thousands_is_found():
    names = [str(number) for number in range(5000)]
    around = {case: Link((needed,)) for case, needed in pairwise([*names, names[0]])}
    assert list(circles(around)) == [names]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Link]:
    names = [f"c{number}" for number in range(draw(st.integers(1, 6)))]
    several = st.lists(st.sampled_from(names), unique=True, max_size=3)
    return {name: Link(tuple(draw(several))) for name in names}


@given(graphs())
def test_a_circle_is_found_where_no_order_is_possible_and_nowhere_else(links):
    found = list(circles(links))
    for circle in found:
        assert all(needed in links[case].needs for case, needed in pairwise([*circle, circle[0]]))
    left = dict(links)
    while free := [case for case in left if not any(needed in left for needed in left[case].needs)]:
        for one in free:
            del left[one]
    assert bool(found) == bool(left)
