"""Dependencies between cases."""

import json
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.authoring.cases.collector import CaseCollector, Links, cycles
from agentv.authoring.cases.context import CaseNotes
from agentv.authoring.source.report import Report
from agentv.errors import LoadError
from agentv.model.suite.conversation import Dependency, Link
from agentv.model.suite.files import GraderFiles
from agentv.model.suite.suite import Case
from agentv.model.values.message import prompt_text
from agentv.model.values.values import Span
from doubles.loading import outcome, repository


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
        return [link.predecessors_sha256 for link in links_of(*cases)[0].values()]

    assert stories("a", "b", "c") == stories("a", "b", "d")
    assert stories("a", "b", "c")[1] != stories("other", "b", "c")[1]
    assert stories("a", "b", "c")[0] != stories("a", "b", "c")[1]


def test_a_suite_may_have_a_file_for_each_of_many_cases():
    report = Report()
    collector = CaseCollector(CaseNotes(GraderFiles()), report)
    for number in (*range(65_537), 65_536):
        collector.add((case(str(number), span=Span(f"/{number}/case.yaml", 1, 1, 1, 2)),))
    collector.add((case("65536", span=Span("/other.yaml", 9, 1, 9, 2)),))
    assert [one.message.partition("; the first is at ")[2][-17:] for one in report.diagnostics] == [
        "",
        "65536/case.yaml:1",
    ]


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
    assert list(cycles(around)) == [names]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Link]:
    names = [f"c{number}" for number in range(draw(st.integers(1, 6)))]
    several = st.lists(st.sampled_from(names), unique=True, max_size=3)
    return {name: Link(tuple(draw(several))) for name in names}


@given(graphs())
def test_a_circle_is_found_where_no_order_is_possible_and_nowhere_else(links):
    found = list(cycles(links))
    for circle in found:
        assert all(needed in links[case].needs for case, needed in pairwise([*circle, circle[0]]))
    left = dict(links)
    while free := [case for case in left if not any(needed in left for needed in left[case].needs)]:
        for one in free:
            del left[one]
    assert bool(found) == bool(left)


@pytest.fixture
def few_held(monkeypatch) -> int:
    """Reduce the number of cases held in memory, so that a short file has cases that are read again; return it."""
    monkeypatch.setattr("agentv.authoring.cases.collector.MOST_IN_MEMORY", 20)
    return 20


def row(number: int, **more) -> str:
    return json.dumps({"id": f"c{number}", "vars": {"q": number}, "assert": [{"contains": "Say"}], **more}) + "\n"


FORMS = {"jsonl": lambda number: row(number, input=f"Say {number}"), "csv": lambda number: f"{number},contains:Say\n"}
HEADS = {"jsonl": "target: echo\n", "csv": 'target: echo\ninput: "{{ q }}"\n'}
FIRST = {"jsonl": "", "csv": "q,__expected\n"}


def suite(folder, form: str, lines):
    text = (FIRST[form] + "".join(lines)).encode("latin-1") if not isinstance(lines, bytes) else lines
    found, told = outcome(repository(folder, {f"s.{form}": text, "s.yaml": HEADS[form]}) / f"s.{form}")
    return (found[0] if found else None), told


@pytest.mark.parametrize("form", FORMS)
def test_every_pass_gives_the_same_cases_which_are_those_of_a_short_file(tmp_path, few_held, form):
    lines = [FORMS[form](number) for number in range(few_held + 5)]
    found, told = suite(tmp_path / "long", form, lines)
    assert (told, len(found.cases)) == ((), few_held + 5)
    first, second = ([(one.id, one.sha256, one.span) for one in found.cases] for _ in range(2))
    assert first == second
    short, _ = suite(tmp_path / "short", form, lines[: few_held - 1])
    assert [(one.id, one.sha256) for one in short.cases] == [one[:2] for one in first[: few_held - 1]]


CHANGES = {
    "another line": lambda lines, line: [lines[0], line(77), *lines[2:]],
    "no line of that kind": lambda lines, _: [lines[0], "{}\n", *lines[2:]],
    "one line more": lambda lines, line: [*lines[:2], line(7_000), *lines[2:]],
    "one line less": lambda lines, _: [lines[0], *lines[2:]],
    "one line more at the end": lambda lines, line: [*lines, line(7_000)],
    "the beginning alone": lambda lines, _: lines[:2],
    "half a line at the end": lambda lines, _: [*lines, '"'],
    "a byte that is no text": lambda lines, _: [*lines[:2], "\xff", *lines[2:]],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_was_changed_while_the_run_went_on_is_an_expected_end(tmp_path, few_held, form, change):
    lines = [FORMS[form](number) for number in range(few_held + 2)]
    found, _ = suite(tmp_path, form, lines)
    assert len(list(found.cases)) == few_held + 2
    changed = "".join([FIRST[form], *CHANGES[change](lines, FORMS[form])])
    (tmp_path / f"s.{form}").write_text(changed, encoding="latin-1")
    with pytest.raises(LoadError, match="was changed during the run and is not run"):
        list(found.cases)


@settings(max_examples=140, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(FORMS)), st.binary(max_size=60) | st.text('q,"_:expctd(0)\n{} ', max_size=60).map(str.encode)
)
def test_any_bytes_are_cases_or_are_told_what_is_wrong(tmp_path, form, data):
    found, told = suite(tmp_path, form, (FIRST[form] or FORMS[form](1)).encode() + data)
    assert bool(found) != any(one.severity == "error" for one in told)


def test_rows_that_are_read_again_have_their_prompts_and_their_unknown_keys(tmp_path, few_held):
    lines = "".join(row(number, topic=number) for number in range(few_held + 1))
    head = "target: echo\nprompts: ['Say {{ q }}', 'Write {{ q }}']\ntests: rows.jsonl\n"
    ((found,), told) = outcome(repository(tmp_path, {"a.eval.yaml": head, "rows.jsonl": lines}) / "a.eval.yaml")
    assert [one.code for one in told] == ["extra-keys"]
    for _ in range(2):
        cases = [(case.metadata["topic"], prompt_text(case.input)) for case in found.cases]
        assert cases == [(number, f"{verb} {number}") for number in range(few_held + 1) for verb in ("Say", "Write")]
    assert len({case.sha256 for case in found.cases}) == 2 * few_held + 2
