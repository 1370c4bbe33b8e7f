"""A run as the Markdown of a comment on a pull request: totals, what failed, and the answers folded away.

No text of a model or a file is read as Markdown or HTML: all of it stands in code, where GitHub and GitLab look for no
links, pictures, tags, mentions or issues either. Source: CommonMark 0.31, GitHub Flavored Markdown 0.29.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import islice

from agentv.model.run.summary import Counts, GroupTotals, Summary
from agentv.model.values.formatting import duration, money, plural
from agentv.reports.run.formatting import LONGEST, check, label, reason, source
from agentv.reports.run.rates import certainty, judged_words, mean_words, rule_words
from agentv.reports.run.totals import outcomes
from agentv.reports.run.view import OUTPUT_KEPT, Finding, Kind, RunView, TrialView
from agentv.reports.text.escaping import one_line, percent, safe

LONGEST_COMMENT = 65_000
"""Bytes of a comment. GitHub takes 65,536 characters, GitLab a million; the rest is for whoever posts it."""

_TABLE_ENDS = LONGEST_COMMENT // 2
"""Bytes after which no more trials are listed: the other half is for what they answered."""

_CLOSING = 500
"""Bytes reserved for the end of the report, such as the number of omitted trials."""

GROUPS = 20
"""Suites, targets and prompts that have a line of their own; `summary.json` holds all."""

_NAME, _WHY = 80, 200
"""Characters of a name, and of what failed, in a table."""

_VERDICTS: dict[Kind, str] = {
    "failed": "Failed",
    "errored": "Errored",
    "skipped": "Not run",
    "noted": "Passed",
    "shown": "Shown",
}

_LISTED: tuple[Kind, ...] = ("failed", "errored", "skipped", "shown")

_BACKTICKS = re.compile("`+")

_COMMAND = re.compile(r"^(?P<indent>[^\S\n]*):(?=:)|#(?=#\[)", re.MULTILINE)
"""Where a job of GitHub Actions that prints the comment would read a command: `::` after white space, `##[` anywhere.

Source: `ActionCommand.TryParseV2` and `TryParse` of github.com/actions/runner.
"""


def render_markdown(view: RunView, summary: Summary, *, here: str, results: str) -> str:
    """The comment, at most `LONGEST_COMMENT` bytes of UTF-8; what does not fit is counted.

    Args:
        view: of the run.
        summary: of the run.
        here: absolute path of the repository, from which paths are shown.
        results: where the rows are, as seen from there.
    """
    page = _MarkdownPage(LONGEST_COMMENT - _CLOSING)
    page.add(
        f"### agentv: {plural(summary.cases.total, 'case')}: {outcomes(summary.cases)}\n\n{_totals_sentence(summary)}\n"
    )
    page.add("".join(_totals(summary)))
    trials = [trial for kind in _LISTED for trial in view.trials(kind)]
    several = view.several_targets
    if trials:
        page.add("\n| case | what happened | check |\n| --- | --- | --- |\n")
        listed = page.fill((_row(trial, several) for trial in trials), _TABLE_ENDS)
        _count_left(page, len(trials) - listed + sum(view.omitted(kind) for kind in _LISTED), "more")
    page.add("\n")
    answered = [one for one in (*trials, *view.trials("noted")) if one.findings or one.output is not None]
    sections = page.fill((_details(trial, here, several) for trial in answered), page.room)
    _count_left(page, len(answered) - sections, "more with their answers")
    return f"{page.text}\nResults: {code(results, _WHY)}\n"


class _MarkdownPage:
    """Text that grows up to a limit."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.text = ""
        self._size = 0

    def add(self, piece: str) -> bool:
        """Add a piece, of whole lines, where it fits; whether it did. No line of it is a command of GitHub."""
        piece = _COMMAND.sub(_no_command, piece)
        size = len(piece.encode("utf-8", "replace"))
        if self._size + size > self.room:
            return False
        self.text += piece
        self._size += size
        return True

    def fill(self, pieces: Iterable[str], end: int) -> int:
        """Add pieces until one does not fit, or the text is as long as `end`; how many there were."""
        added = 0
        for piece in pieces:
            if self._size > end or not self.add(piece):
                break
            added += 1
        return added


def _count_left(page: _MarkdownPage, number: int, what: str) -> None:
    if number:
        page.add(f"\nand {number:,} {what}, in the results\n")


def _totals_sentence(summary: Summary) -> str:
    """The totals as a sentence."""
    unpriced = summary.unpriced_trials or summary.judge_unpriced_trials
    known = summary.cost_usd is not None or summary.judge_cost_usd is not None
    spent = money((summary.cost_usd or 0.0) + (summary.judge_cost_usd or 0.0)).replace("$", r"\$").replace("<", r"\<")
    cost = f"cost {'at least ' if unpriced else ''}{spent}" if known else "cost unknown"
    took = f", {duration(summary.duration_ms)}" if summary.duration_ms else ""  # nobody timed a run that was killed
    if summary.pass_rate is None:
        return f"Nothing was graded; {cost}{took}."
    sure = certainty(summary, lambda key: code(key, _NAME))
    rate = f"**Pass rate {percent(summary.pass_rate)}** {judged_words(summary)} ({sure})"
    numbers = ", ".join(one for one in (rate, mean_words(summary)) if one)
    met = rule_words(summary)
    return f"{numbers}; {cost}{took}.{f' {met[0].upper()}{met[1:]}.' if met else ''}"


def _totals(summary: Summary) -> Iterator[str]:
    """A table of suites, targets, prompts and variants, where there are several; else there is no more to say."""
    groups = [*_groups("suite", summary.by_suite), *_groups("target", summary.by_target)]
    groups += [*_groups("prompt", summary.by_prompt), *_groups("variant", summary.by_variant)]
    if not groups:
        return
    yield "\n| | cases | passed | failed | errored | not run | pass rate | 95% CI | mean score |\n"
    yield "| --- | --: | --: | --: | --: | --: | --: | --: | --: |\n"
    yield _group("all", GroupTotals(summary.cases, summary.pass_rate, summary.mean_score, summary.pass_rate_interval))
    yield from groups


def _groups(what: str, groups: Mapping[str, GroupTotals]) -> Iterator[str]:
    if len(groups) < 2:
        return
    for name, group in islice(groups.items(), GROUPS):
        yield _group(f"{what} {_cell(name, _NAME)}", group)
    if len(groups) > GROUPS:
        yield f"| and {plural(len(groups) - GROUPS, f'more {what}')} | | | | | | | | |\n"


def _group(name: str, group: GroupTotals) -> str:
    cases: Counts = group.cases
    interval = " to ".join(map(percent, group.pass_rate_interval or ()))
    rate = "" if group.pass_rate is None else percent(group.pass_rate)
    mean = "" if group.mean_score is None else f"{group.mean_score:.2f}"
    numbers = (cases.total, cases.passed, cases.failed, cases.errored, cases.skipped)
    return f"| {' | '.join([name, *map(str, numbers), rate, interval, mean])} |\n"


def _row(trial: TrialView, several: bool) -> str:
    first = next(iter(trial.findings), None)
    found = "" if first is None else _cell(check(first), _WHY)
    more = len(trial.findings) - 1
    checks = f"{found} and {more} more" if more > 0 else found
    happened = f"{_VERDICTS[trial.kind]}: {_cell(reason(trial), _WHY)}"
    return f"| {_cell(label(trial, targets=several), _NAME)} | {happened} | {checks} |\n"


def _details(trial: TrialView, here: str, several: bool) -> str:
    """A trial folded away: its checks, then its answer. A line of HTML is raw up to the next empty line."""
    name, why = label(trial, targets=several), reason(trial)
    summary = f"<code>{escape(one_line(name, LONGEST))}</code>: <code>{escape(one_line(why, LONGEST))}</code>"
    parts = [f"<details><summary>{_VERDICTS[trial.kind]}: {summary}</summary>"]
    if trial.findings:
        parts.append("\n".join(_finding(finding, here) for finding in trial.findings))
    if trial.output is not None:
        cut = " (its beginning)" if len(trial.output) >= OUTPUT_KEPT else ""
        parts.append(f"Answer{cut}:\n\n{_fenced(trial.output)}")
    return "\n\n".join([*parts, "</details>\n"])


def _finding(finding: Finding, here: str) -> str:
    place = source(finding, here)
    evidence = f": {code(finding.evidence, LONGEST)}" if finding.evidence else ""
    at = f" at {code(place, LONGEST)}" if place else ""
    return f"- {finding.state}: {code(check(finding), LONGEST)}{evidence}{at}"


def _fenced(text: str) -> str:
    """The text between fences longer than any that stands in it."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{safe(text)}\n{fence}"


def _no_command(found: re.Match[str]) -> str:
    r"""The first character of a command spelled out: `\x3a:error`."""
    indent = found["indent"]
    return r"\x23" if indent is None else rf"{indent}\x3a"


def code(text: str, longest: int) -> str:
    """The text as code on one line, cut to so many characters."""
    line = one_line(text, longest) or " "
    fence = "`" * (_longest_run(line) + 1)
    room = " " if line[0] in "` " or line[-1] in "` " else ""  # one space at each end is no part of the code
    return f"{fence}{room}{line}{room}{fence}"


def _cell(text: str, longest: int) -> str:
    r"""Code in a table, where a `|` ends the cell unless a lone `\\` stands before it."""
    return re.sub(r"\\+(?=\|)", lambda found: f"{found[0]} ", code(text, longest)).replace("|", "\\|")


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
