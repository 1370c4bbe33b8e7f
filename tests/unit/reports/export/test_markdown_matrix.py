from __future__ import annotations

from markdown_it import MarkdownIt
from msgspec.structs import replace

from agentv.reports.export.markdown import matrix_markdown
from doubles.matrix import HOSTILE, MATRIX

GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def written(**changed):
    return "".join(matrix_markdown(replace(MATRIX, **changed)))


def test_the_table_has_a_column_for_each_target_and_nothing_in_it_is_markup():
    page = GITHUB.render(written())
    assert "<b>" not in page
    assert page.count("<th>") == 4
    assert page.count("<tr>") == 6
    assert page.count("<td>") == 5 * 4  # a name with | ends no cell
    assert "\x1b" not in page
    assert page.count("<li>") == 5
    assert "60.0% of 10 (40.0% to 90.0%)" in page
    assert "10 errored" in page


def test_prompts_are_columns_where_one_target_ran():
    lines = written(targets=("gpt",), cells=(MATRIX.cells[0], MATRIX.cells[3]), by_target=()).split("\n")
    assert lines[1] == "| | `plain` | `short` |"
    assert lines[3].startswith("| pass rate | 60.0% of 10")
    assert HOSTILE not in "".join(lines)
