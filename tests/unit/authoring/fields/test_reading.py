"""Placeholders, files and misspelt keys, wherever they stand."""

from pathlib import Path

import pytest

from agentv.authoring.source.nodes import Scalar, plain
from doubles.loading import parsed, reading_of, repository


def rendered(text: str, folder: Path, **more):
    """A file with its placeholders filled in, and its diagnostics: code, line, column, message, hint."""
    path = repository(folder, {"suite.eval.yaml": text}) / "suite.eval.yaml"
    reading = reading_of(folder, renders=True, **more)
    node = reading.rendered(parsed(text, str(path)))
    found = reading.report.diagnostics
    return node and plain(node), [(one.code, one.span.line, one.span.column, one.message, one.hint) for one in found]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: {{'x {{ nobody }}'}}".replace("{{'", "'").replace("'}}", "'"), (1, 7)),
        ('a: "x {{ nobody }}"', (1, 7)),
        ("a: |\n  first\n    {{ nobody }}\n", (3, 5)),
        ("a: >-\n  first\n  then {{ nobody | upper }}\n", (3, 8)),
        ("a: x {% if nobody %}y{% endif %}", (1, 6)),
        ("a: x {{ y.nobody }}", (1, 6)),
        ("b: '{{ y.a }} nobody'\na: '{{ nobody }}'", (2, 5)),
        ("a: ü {{ nobody }}", (1, 6)),
    ],
)
def test_an_undefined_name_is_told_at_its_placeholder(tmp_path, text, place):
    _, told = rendered(text, tmp_path, variables={"y": {"a": 1}})
    assert [(code, line, column) for code, line, column, *_ in told] == [("undefined-variable", *place)]


def test_the_same_name_in_the_environment_and_in_the_variables_is_a_warning(tmp_path):
    value, told = rendered(
        "a: x ${{ NAME }}\nb: ${{ OTHER }}", tmp_path, variables={"NAME": 1}, env={"NAME": "n", "OTHER": "o"}
    )
    assert value == {"a": "x n", "b": "o"}
    assert [(code, line, column) for code, line, column, *_ in told] == [("environment-or-variable", 1, 6)]


def test_text_is_needed_where_a_text_is_rendered(tmp_path):
    reading = reading_of(tmp_path, variables={"items": [1], "n": 5}, renders=True)
    assert reading.render_text(Scalar("{{ n }}", "{{ n }}", parsed("x").at)) == "5"
    assert reading.render_text(Scalar("{{ items }}", "{{ items }}", parsed("x").at)) is None
    assert reading.render_text(Scalar("{{ nobody }}", "{{ nobody }}", parsed("x").at)) is None
    assert [one.code for one in reading.report.diagnostics] == ["bad-value", "undefined-variable"]


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("./docs/guid.md", "did you mean './docs/guide.md'?"),
        ("/docs/guidee.md", "did you mean '/docs/guide.md'?"),
        ("file://docs/gide.md", "did you mean 'file://docs/guide.md'?"),
        ("docs/unlike-anything.txt", None),
        ("x" * 300, None),
        ('"no\\0pe"', None),
    ],
)
def test_a_missing_file_names_its_nearest_neighbour(tmp_path, path, hint):
    repository(tmp_path, {"docs/guide.md": "x"})
    reading = reading_of(tmp_path)
    assert reading.find(parsed(path, str(tmp_path / "suite.eval.yaml")), "file") is None
    (found,) = reading.report.diagnostics
    assert found.code == "missing-file"
    assert found.hint == hint
    assert found.notes
