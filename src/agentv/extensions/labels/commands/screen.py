"""Screens of `agentv label`: one answer each, and the key that labels it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from shutil import get_terminal_size

import click

from agentv.extensions.labels.answers import DrawnAnswer
from agentv.extensions.labels.labelling import LabellingSession
from agentv.model.run.labels import Label, LabelVerdict
from agentv.reports.text.escaping import cells, one_line, safe

VERDICTS: dict[str, LabelVerdict] = {"1": "pass", "p": "pass", "0": "fail", "f": "fail", "u": "unsure"}
_BETWEEN = " · "
KEYS = "1 pass · 0 fail · u unsure · n note · b back · q quit"


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where answers are shown and keys are read; tests give another one."""

    show: Callable[[str], None] = click.echo
    clear: Callable[[], None] = click.clear
    key: Callable[[], str] = click.getchar
    line: Callable[[str], str] = field(default=lambda text: str(click.prompt(text, default="", show_default=False)))
    columns: Callable[[], int] = field(default=lambda: get_terminal_size().columns)


def label_all(session: LabellingSession, terminal: Terminal | None = None) -> None:
    """Show the answers that have no label yet, until all have one or the person quits."""
    terminal = terminal or Terminal()
    order = session.to_label
    place, last = 0, ""
    notes: dict[int, str] = {}
    while place < len(order):
        drawn = order[place]
        terminal.clear()
        earlier = session.given.get(drawn.answer.item)
        note = notes.get(place, earlier.note if earlier else "")
        said = f"your label: {earlier.verdict}" if earlier else ""
        note_shown = f"note: {one_line(note)}" if note else ""
        position = f"{place + 1} of {len(order)}"
        terminal.show(screen(drawn, position, (last, said, note_shown), terminal.columns()))
        key = _key(terminal, ("b", "n", "c", *VERDICTS))
        last = ""
        if key == "q":
            return
        if key == "b":
            place = max(0, place - 1)
        elif key in ("n", "c"):
            notes[place] = terminal.line("note").strip()
        else:
            last = saved(session.label(drawn, VERDICTS[key], note))
            place += 1
    if last:
        terminal.show(last)


def _key(terminal: Terminal, known: Collection[str]) -> str:
    """One of the keys; end of input quits."""
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


def screen(drawn: DrawnAnswer, position: str, notices: tuple[str, str, str], columns: int) -> str:
    """An answer and what it is judged by. Nothing of it shows what the judge said.

    Args:
        drawn: the answer.
        position: which of how many it is.
        notices: what was saved last, what the person said of this answer, and the note.
        columns: of the terminal.
    """
    answer = drawn.answer
    saved_last, said, note = notices
    heading = f"{position} · {one_line(answer.case)} · {one_line(answer.assertion)}"
    texts = [("input", answer.input), *(("retrieved", text) for text in answer.retrieved)]
    texts += [("reference", answer.reference), ("answer", answer.output), ("criteria", answer.asked.rubric)]
    shown = (f"{name.upper()}\n{_indented(text, columns)}" for name, text in texts if text)
    question = f"Does the answer meet the criteria?\n{_in_lines(columns)}"
    return "\n\n".join(filter(None, (saved_last, heading, *shown, "\n".join(filter(None, (said, note))), question)))


def saved(label: Label) -> str:
    """What was saved. What the judge said stays hidden, since the person may still go back."""
    return f"saved {one_line(label.case)}: {label.verdict}"


def _indented(text: str, columns: int) -> str:
    """The text, wrapped at spaces."""
    width = max(20, columns - 2)
    lines = (line for written in safe(text).split("\n") for line in _wrapped(written, width))
    return "\n".join(f"  {line}" for line in lines)


def _wrapped(line: str, width: int) -> list[str]:
    if cells(line) <= width:
        return [line]
    from textwrap import wrap

    return wrap(line, width, replace_whitespace=False, break_on_hyphens=False) or [""]


def _in_lines(columns: int) -> str:
    """The keys, on as many lines as they need."""
    lines = [""]
    for key in KEYS.split(_BETWEEN):
        longer = f"{lines[-1]}{_BETWEEN}{key}" if lines[-1] else key
        if cells(longer) <= columns:
            lines[-1] = longer
        else:
            lines.append(key)
    return "\n".join(lines)
