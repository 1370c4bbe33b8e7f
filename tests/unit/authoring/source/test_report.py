"""The loader's collected diagnostics."""

from agentv.authoring.source.report import Report
from agentv.model.values.values import Span

AT = Span("file.yaml", 3, 1, 3, 2)


def test_the_same_mistake_at_the_same_place_is_kept_once_and_fails_each_section_that_reports_it():
    report = Report()
    report.error("bad-value", AT, "wrong")
    section = report.section()
    assert section.valid
    section.error("bad-value", AT, "wrong")
    assert report.count == 1
    assert section.failed


def test_a_note_is_one_line_of_bearable_length_too():
    report = Report()
    report.error("bad-value", Span("a.yaml", 1, 1, 1, 2), "wrong", notes=["tried a\nb", "x" * 10_000])
    (found,) = report.diagnostics
    assert found.notes[0] == "tried a\\nb"
    assert len(found.notes[1]) == 4_000


def at(line):
    return Span("file.yaml", line, 1, line, 2)


def test_very_many_lines_are_counted():
    report = Report()
    for line in range(1, 32):
        report.error("unknown-target", at(line), "no target 'x'")
    assert report.diagnostics[0].notes == ("also at lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 20 more",)
