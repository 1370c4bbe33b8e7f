"""Terminal screens of `agentv label`, each with an answer and the keys that label or rate it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from shutil import get_terminal_size

import click
from msgspec import Struct, field

from agentv.extensions.labels.labelling import LabellingSession
from agentv.extensions.labels.ratings import RatingSession
from agentv.model.run.labels import LabelVerdict
from agentv.model.values.message import prompt_text, reference_text
from agentv.reports.text import cells, one_line, safe

VERDICTS: dict[str, LabelVerdict] = {"1": "pass", "p": "pass", "0": "fail", "f": "fail", "u": "unsure"}
KEYS = "1 pass · 0 fail · u unsure · n note · b back · q quit"
RATING_KEYS = "1 good · 0 bad · c comment · Enter next · b back · q quit"


class Terminal(Struct, frozen=True):
    """Output and key input; tests replace them."""

    show: Callable[[str], None] = click.echo
    clear: Callable[[], None] = click.clear
    key: Callable[[], str] = click.getchar
    line: Callable[[str], str] = field(default=lambda text: str(click.prompt(text, default="", show_default=False)))
    columns: Callable[[], int] = field(default=lambda: get_terminal_size().columns)


def label_all(session: LabellingSession, terminal: Terminal | None = None) -> None:
    """Show the unlabelled answers one by one, until all are labelled or the person quits."""
    terminal = terminal or Terminal()
    order = session.to_label
    place, last = 0, ""
    notes: dict[int, str] = {}
    while place < len(order):
        drawn, answer = order[place], order[place].answer
        terminal.clear()
        earlier = session.given.get(answer.item)
        note = notes.get(place, earlier.note if earlier else "")
        said = [f"your label: {earlier.verdict}" if earlier else "", f"note: {one_line(note)}" if note else ""]
        heading = f"{place + 1} of {len(order)} · {one_line(answer.case)} · {one_line(answer.assertion)}"
        texts = [("input", answer.input), *(("retrieved", text) for text in answer.retrieved)]
        texts += [("reference", answer.reference), ("answer", answer.output), ("criteria", answer.asked.rubric)]
        question = ("Does the answer meet the criteria?", KEYS)
        terminal.show(_screen((last, heading), texts, said, question, terminal.columns()))
        key = _key(terminal, ("b", "n", "c", *VERDICTS))
        last = ""
        if key == "q":
            return
        if key == "b":
            place = max(0, place - 1)
        elif key in ("n", "c"):
            notes[place] = terminal.line("note").strip()
        else:
            # the judge's verdict stays hidden, since the person may still go back
            label = session.label(drawn, VERDICTS[key], note)
            last = f"saved {one_line(label.case)}: {label.verdict}"
            place += 1
    if last:
        terminal.show(last)


def rate_all(session: RatingSession, terminal: Terminal | None = None) -> None:
    """Show the answers one by one, starting at the first unrated one, until the last or the person quits."""
    terminal = terminal or Terminal()
    order = list(session.answers)
    place = next((at for at, answer in enumerate(order) if session.own(answer) is None), 0)
    last = ""
    while place < len(order):
        answer = order[place]
        own, result = session.own(answer), session.answers[answer]
        trial = result.trial
        ran_with = [trial.case.prompt_id, trial.target.name, trial.variant.name if trial.variant else None]
        heading = [f"{place + 1} of {len(order)}", trial.case.id, *filter(None, ran_with), result.status]
        said = []
        for one in session.given.get(answer, ()):
            who = "your rating" if one is own else one.person
            said.append(one_line(f"{who}: {', '.join(filter(None, (_THUMBS[one.verdict], one.note)))}"))
        texts = [("input", prompt_text(result.input)), *(("retrieved", one.text) for one in result.context)]
        texts += [("reference", reference_text(trial.case.expected_output)), ("answer", result.output or "")]
        terminal.clear()
        heads = (last, " · ".join(map(one_line, heading)))
        terminal.show(_screen(heads, texts, said, ("", RATING_KEYS), terminal.columns()))
        key, last = _key(terminal, ("1", "0", "c", "n", "b", "\r", "\n", " ")), ""
        if key == "q":
            return
        if key == "b":
            place = max(0, place - 1)
        elif key in ("c", "n"):
            session.rate(answer, own.verdict if own else "unsure", terminal.line("comment").strip())
        else:
            if key in VERDICTS:
                verdict: LabelVerdict = "unsure" if own and own.verdict == VERDICTS[key] else VERDICTS[key]
                session.rate(answer, verdict, own.note if own else "")
                last = f"saved {one_line(answer[1])}: {_THUMBS[verdict] or 'no thumb any more'}"
            place += 1
    if last:
        terminal.show(last)


_THUMBS: dict[LabelVerdict, str] = {"pass": "good", "fail": "bad", "unsure": ""}


def _key(terminal: Terminal, known: Collection[str]) -> str:
    """Read one of the known keys; `q` also stands for the end of input."""
    while True:
        try:
            key = terminal.key().lower()
        except EOFError:
            return "q"
        if key in ("\x03", ""):
            raise KeyboardInterrupt
        if key in ("\x04", "q"):
            return "q"
        if key in known:
            return key
        terminal.show(f"no such key: {one_line(key)}")


def _screen(
    heads: Sequence[str], texts: Iterable[tuple[str, str]], said: Iterable[str], asked: tuple[str, str], columns: int
) -> str:
    """Join headings, titled texts, earlier labels, and a question with its keys."""
    shown = (f"{name.upper()}\n{_indented(text, max(20, columns - 2))}" for name, text in texts if text)
    question = "\n".join(filter(None, asked))
    return "\n\n".join(filter(None, (*heads, *shown, "\n".join(filter(None, said)), question)))


def _indented(text: str, width: int) -> str:
    from textwrap import wrap

    lines: list[str] = []
    for line in safe(text).split("\n"):
        fits = cells(line) <= width
        lines += [line] if fits else wrap(line, width, replace_whitespace=False, break_on_hyphens=False) or [""]
    return "\n".join(f"  {line}" for line in lines)
