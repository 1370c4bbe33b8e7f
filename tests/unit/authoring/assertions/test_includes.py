"""Templates (SPEC section 7.3). What goes wrong with them is in `tests/cases/invalid`."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.app.authored.validate import validate
from agentv.authoring.assertions.includes import DEPTH
from agentv.authoring.source.nodes import node_of
from agentv.model.values.span import Span
from doubles.loading import parsed, reading_of, repository, suite_of


def codes(text: str, folder: Path, files: dict[str, str]) -> list[str]:
    reading = reading_of(repository(folder, files))
    reading.entries(parsed(text, str(folder / "suite.eval.yaml")), reading)
    return [one.code for one in reading.report.diagnostics]


def chain(length: int) -> dict[str, str]:
    """Templates that include each other in a row: t1 includes t2, … the last one includes none."""
    files = {f".agentv/templates/t{n}.yaml": f"assert: [{{include: t{n + 1}}}]\n" for n in range(1, length)}
    return {**files, f".agentv/templates/t{length}.yaml": "assert: [{contains: x}]\n"}


def test_templates_nest_to_the_limit_and_no_further(tmp_path):
    assert codes("- include: t1", tmp_path / "a", chain(DEPTH)) == []
    assert codes("- include: t1", tmp_path / "b", chain(DEPTH + 1)) == ["include-depth"]


def test_sets_inside_templates_do_not_hide_depth_or_cycles(tmp_path):
    files = {".agentv/templates/a.yaml": "assert: [{assert-set: [{assert-set: [{include: a}]}]}]\n"}
    assert codes("- include: a", tmp_path, files) == ["include-cycle"]


def test_the_same_template_twice_is_no_cycle(tmp_path):
    files = {
        ".agentv/templates/a.yaml": "assert: [{include: c}, {include: c}]\n",
        ".agentv/templates/c.yaml": "assert: [{contains: x}]\n",
    }
    assert codes("[{include: a}, {include: c}, {include: a}]", tmp_path, files) == []


def test_a_broken_template_is_told_of_wherever_it_is_included(tmp_path):
    files = {".agentv/templates/broken.yaml": "# assert:\n"}
    reading = reading_of(repository(tmp_path, files))
    for _ in range(2):
        own = reading.part()
        assert reading.entries(parsed("- include: broken"), own) == ((), False)
        assert own.report.failed


def test_a_file_is_read_once_however_often_it_is_included(tmp_path):
    template = (
        repository(tmp_path, {".agentv/templates/a.yaml": "assert: [{contains: x}]\n"}) / ".agentv/templates/a.yaml"
    )
    reading = reading_of(tmp_path)
    node = parsed("- include: a", str(tmp_path / "suite.eval.yaml"))
    assert len(reading.entries(node, reading).value) == 1
    template.unlink()
    template.write_text("assert: [{contains: y}, {contains: z}]\n", encoding="utf-8")
    assert len(reading.entries(node, reading).value) == 1


def test_a_template_without_placeholders_is_shared_by_all_cases(tmp_path):
    text = "target: echo\nassert: [{include: a}]\ntests:\n" + "".join(f"  - {{id: c{n}, input: x}}\n" for n in range(3))
    suite = suite_of(tmp_path, text, {".agentv/templates/a.yaml": "assert: [{contains: x}]\n"})
    first, *others = [case.assertions[0] for case in suite.cases]
    assert all(one is first for one in others)


NAMES = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAMES)
def test_any_name_is_a_template_or_is_told_to_be_missing(tmp_path, name):
    reading = reading_of(tmp_path)
    at = Span(str(tmp_path / "suite.eval.yaml"), 1, 1, 1, 2)
    assert reading.entries(node_of([{"include": name}], at), reading).value == ()
    assert reading.report.failed


def test_a_name_with_its_suffix_is_that_file_and_two_of_one_name_are_told(tmp_path):
    templates = tmp_path / ".agentv" / "templates"
    templates.mkdir(parents=True)
    for name in ("safety.yaml", "safety.yml"):
        (templates / name).write_text("assert:\n  - contains: x\n")
    (tmp_path / ".git").mkdir()
    path = tmp_path / "a.eval.yaml"
    entries = ("safety.yml", "safety", "none.yaml")
    cases = "".join(f"  - {{id: {one}, input: x, assert: [{{include: {one}}}]}}\n" for one in entries)
    path.write_text(f"target: echo\ntests:\n{cases}")
    found = validate((str(path),), {})
    assert [(one.code, one.severity) for one in found] == [
        ("unused-template", "warning"),
        ("missing-template", "error"),
    ]
    assert [one.endswith("none.yaml") for one in found[1].notes] == [True]


def test_what_has_the_name_of_a_template_and_is_no_file_is_told(tmp_path):
    reading = reading_of(repository(tmp_path, {".agentv/templates/t.yaml/a.md": "hi\n"}))
    reading.entries(parsed("- include: t", str(tmp_path / "suite.eval.yaml")), reading)
    (found,) = reading.report.diagnostics
    assert found.code == "missing-template"
    assert found.hint.endswith("t.yaml is not a file")
