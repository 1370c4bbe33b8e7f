import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from agentv.model.run.matrix import Counts, GroupTotals
from agentv.model.values.response import Failure
from agentv.reports.markdown import GROUPS, LONGEST_COMMENT, matrix_markdown, render_markdown
from doubles.matrix import HOSTILE as HOSTILE_TARGET
from doubles.matrix import MATRIX
from doubles.trials import finished, scored, trial
from doubles.views import LOOKS, SUMMARY, run_view, view_of

GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OURS = {
    "h3",
    "p",
    "strong",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "code",
    "details",
    "summary",
    "ul",
    "li",
    "pre",
}
GOLD = Path(__file__).parent / "gold"
GROUP = GroupTotals(Counts(2, 1, 1), 0.5, 0.5, (0.095, 0.905), 2)


class Page(HTMLParser):
    """The element names and the text that a browser would see."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.text, self.attributes, self.rows = [], "", [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += 1

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        self.elements.append("a comment")

    def unknown_decl(self, data):
        self.elements.append("a declaration")

    handle_decl = handle_pi = unknown_decl


def written(*results, summary=SUMMARY, **looks):
    return render_markdown(view_of(*results), summary, **{**LOOKS, **looks})


def page_of(*results, summary=SUMMARY):
    return Page(GITHUB.render(written(*results, summary=summary)))


def test_gold():
    assert render_markdown(run_view(), SUMMARY, **LOOKS) == (GOLD / "markdown.md").read_text()


def test_groups_are_compared_where_there_are_several():
    summary = replace(SUMMARY, by_suite={"a": GROUP, "b|`": GROUP}, by_target={"gpt": GROUP})
    page = page_of(summary=summary)
    assert page.rows == [9, 9, 9, 9]
    assert "suite b|`" in page.text
    assert "target" not in page.text
    text = written(summary=replace(summary, interval_clusters=3, clustered_by=("o'brien`",)))
    assert "of 6 judged (95% CI 9.7% to 70.0%, 3 clusters by `` o'brien` ``; 25.0% if all 2 errored had failed)" in text
    assert "| all | 9 | 2 | 4 | 2 | 1 | 33.3% | 9.7% to 70.0% |" in text
    assert "| suite `a` | 2 | 1 | 1 | 0 | 0 | 50.0% | 9.5% to 90.5% | 0.50 |" in text
    many = {f"s{number}": GROUP for number in range(GROUPS + 3)}
    assert "and 3 more suites" in written(summary=replace(SUMMARY, by_suite=many))


def test_a_thousand_failures_with_long_answers_fit_into_a_comment():
    long = "\u202e`|<" * 2000
    results = [
        finished(
            "failed", trial=trial(f"{number} {long}"), output=long, scores=[scored(False, text=long, evidence=long)]
        )
        for number in range(1200)
    ]
    text = written(*results)
    assert LONGEST_COMMENT - 8000 < len(text.encode()) <= LONGEST_COMMENT
    assert "\n| 1200 cases | Failed: " in text.replace("1,200", "1200")
    assert re.search(r"and \d+ more with their answers, in the results", text)
    assert text.endswith(f"Results: `{LOOKS['results']}`\n")


BITS = ["`", "```", "|", "\\", "\\|", "\n", "\r\n", "<b>", "</details>", "<script>", "<!--", "-->", "<![CDATA[", "]]>"]
BITS += ["&lt;", "[x](http://e)", "![y](z)", "https://a.b", "@me", "#1", "*", "_", "~~~", "- ", "# ", "    ", "\t", "a"]
BITS += ["\u2028", "\u202e", "\x00", "\ud800", "</code>", "<?php", "</pre>", "|\n|---|"]
HOSTILE = st.lists(st.sampled_from(BITS), max_size=12).map("".join)


@given(HOSTILE, HOSTILE, HOSTILE)
@example("````\n<script>\n![y](z)", "</code><script>", "</code><script>")
def test_no_text_is_read_as_markdown_or_html(output, said, name):
    score = scored(False, text=said, evidence=said, name=name or "x")
    subject = trial(name, target=said, suite=name, prompt_id=said)
    error = Failure("target-failed", said)
    results = [
        finished("failed", trial=subject, output=output, scores=[score]),
        finished("errored", trial=subject, error=error),
    ]
    page = page_of(*results, summary=replace(SUMMARY, by_suite={name: GROUP, f"{name}1": GROUP}))
    assert set(page.elements) <= OURS
    assert set(page.attributes) <= {"class", "style"}
    assert page.elements.count("details") == 2
    assert set(page.rows) == {9, 3}


@pytest.mark.parametrize("text", ["::error::x", "a\n::set-output name=b::c", "a\n \t::error::x", "a ##[add-mask]b"])
def test_no_line_of_the_comment_is_a_command_of_github(text):
    results = [finished("failed", trial=trial(text), output=text, scores=[scored(False, text=text, evidence=text)])]
    shown = written(*results)
    assert not [line for line in shown.splitlines() if line.lstrip().startswith("::")]
    assert "##[" not in shown
    assert r"\x3a:" in shown or r"\x23#[" in shown


def markdown_matrix_written(**changed):
    return "".join(matrix_markdown(replace(MATRIX, **changed)))


def test_the_table_has_a_column_for_each_target_and_nothing_in_it_is_markup():
    page = GITHUB.render(markdown_matrix_written())
    assert "<b>" not in page
    assert page.count("<th>") == 4
    assert page.count("<tr>") == 6
    assert page.count("<td>") == 5 * 4  # a | in a name ends no cell
    assert "\x1b" not in page
    assert page.count("<li>") == 5
    assert "60.0% of 10 (40.0% to 90.0%)" in page
    assert "10 errored" in page


def test_prompts_are_columns_where_one_target_ran():
    lines = markdown_matrix_written(targets=("gpt",), cells=(MATRIX.cells[0], MATRIX.cells[3]), by_target=()).split(
        "\n"
    )
    assert lines[1] == "| | `plain` | `short` |"
    assert lines[3].startswith("| pass rate | 60.0% of 10")
    assert HOSTILE_TARGET not in "".join(lines)
