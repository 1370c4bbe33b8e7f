from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.assertions.measured import Latency
from agentv.assertions.structure import AssertSet
from agentv.assertions.text.matching import Contains, Equals, IContains, MaxTokens, MinTokens, StartsWith, WordCount
from agentv.authoring.assertions.consistency import COMPARED, check_entries
from agentv.authoring.source.report import Report
from agentv.model.run.context import Assertion, AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.model.values.span import Span

NAMES = {Contains: "contains", IContains: "icontains", Equals: "equals", StartsWith: "starts-with"}
COUNTING = {MinTokens: "min-tokens", MaxTokens: "max-tokens", WordCount: "word-count"}


def entry(assertion: Assertion, line: int = 1, **settings: object) -> AssertionEntry:
    kind = {**NAMES, **COUNTING, Latency: "latency", AssertSet: "assert-set"}[type(assertion)]
    return AssertionEntry(kind, assertion, AssertionSettings(**settings), Span("s.yaml", line, 1, line, 2))  # type: ignore[arg-type]


def told(*entries: AssertionEntry) -> list[str]:
    report = Report()
    check_entries(entries, report)
    return [found.code for found in report.diagnostics]


def test_more_entries_of_a_type_than_are_compared_are_left_alone() -> None:
    many = [entry(Contains(f"a{number}"), number) for number in range(COMPARED)]
    assert told(*many, entry(Contains("a0"), 99)) == []
    assert told(*many[1:], many[0], entry(Contains("a0"), 99)) == []
    assert told(*many[: COMPARED - 1], entry(Contains("a0"), 99)) == ["duplicate-assertion"]


TEXTS = st.text(alphabet="ab ", min_size=1, max_size=4).filter(str.strip)
ASSERTIONS = st.one_of(
    TEXTS.map(Contains),
    TEXTS.map(IContains),
    TEXTS.map(StartsWith),
    TEXTS.map(Equals),
    st.integers(1, 3).map(MinTokens),
    st.integers(0, 3).map(MaxTokens),
    st.integers(0, 3).map(WordCount),
)
ENTRIES = st.builds(lambda assertion, negate: entry(assertion, negate=negate), ASSERTIONS, st.booleans())


@settings(deadline=None)  # the first one imports `regex`
@given(st.lists(ENTRIES, min_size=2, max_size=3), st.text(alphabet="ab ", max_size=8))
def test_an_answer_that_passes_all_proves_that_there_is_no_contradiction(
    entries: list[AssertionEntry], answer: str
) -> None:
    grades = [one.assertion.grade(AssertionContext((), answer)) for one in entries]
    passes = [
        isinstance(grade, Grade) and grade.passed is not one.settings.negate
        for one, grade in zip(entries, grades, strict=True)
    ]
    assert not all(passes) or "contradiction" not in told(*entries)
