from agentv.assertions.text.matching import Contains
from agentv.authoring.cases.case_assertions import COMPARED, check_entries
from agentv.authoring.source.report import Report
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry
from agentv.model.values.values import Span


def entry(value: str, line: int) -> AssertionEntry:
    return AssertionEntry("contains", Contains(value), DEFAULTS, Span("s.yaml", line, 1, line, 2))


def told(*entries: AssertionEntry) -> list[str]:
    report = Report()
    check_entries(entries, report)
    return [found.code for found in report.diagnostics]


def test_more_entries_of_a_type_than_are_compared_are_left_alone() -> None:
    many = [entry(f"a{number}", number) for number in range(COMPARED)]
    assert told(*many, entry("a0", 99)) == []
    assert told(*many[1:], many[0], entry("a0", 99)) == []
    assert told(*many[: COMPARED - 1], entry("a0", 99)) == ["duplicate-assertion"]
