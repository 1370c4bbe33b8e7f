"""Files of a prompt's directory: their names, and which of them are there (SPEC section 11)."""

from __future__ import annotations

import os
from pathlib import Path

from agentv.authoring.cases.sections import sections_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import repository_root, shown, upwards
from agentv.authoring.source.nodes import Place, Scalar
from agentv.model.values.span import Span

PROMPT_FILES = ("prompt.xml", "prompt.md", "prompt.txt")
"""What a prompt's text may be called; a directory holds one of them."""

META = "meta.yaml"
"""What says who a prompt is."""

EXAM_FILES = ("eval.yml", "eval.yaml")
"""What the exam beside a prompt is called."""

_BESIDE = (*PROMPT_FILES, META)


def is_exam(path: str) -> bool:
    """Whether a file is an exam by its name and the files next to it."""
    directory, name = os.path.split(path)
    return name in EXAM_FILES and any(Path(directory, other).is_file() for other in _BESIDE)


def exam_of(directory: str | Path) -> str | None:
    """The exam of a prompt's directory; None if it has none."""
    return next((str(path) for name in EXAM_FILES if (path := Path(directory) / name).is_file()), None)


def exam_above(path: str) -> str | None:
    """The exam of the prompt whose directory contains a file, or None."""
    directory = Path(path).parent
    found = (exam_of(parent) for parent in upwards(str(directory), repository_root(str(directory))))
    return next((exam for exam in found if exam is not None and is_exam(exam)), None)


def prompt_file_of(directory: str | Path) -> Path | None:
    """The prompt file of a directory; the first, if there are several."""
    return next((path for name in PROMPT_FILES if (path := Path(directory) / name).is_file()), None)


def the_prompt_file(directory: str | Path, reading: Reading, at: Place | None = None) -> Path | None:
    """The only prompt file of a directory; None without one, or with several, which is reported.

    Args:
        directory: of the prompt, absolute.
        reading: gets what is wrong.
        at: where it is reported that there is no prompt.
    """
    beside = [file for name in PROMPT_FILES if (file := Path(directory) / name).is_file()]
    if not beside:
        tried = [f"tried {shown(str(Path(directory) / name))}" for name in PROMPT_FILES]
        reading.report.error("missing-file", at, "there is no prompt next to this exam", notes=tried)
    elif len(beside) > 1:
        message = f"a prompt has one text, found {' and '.join(one.name for one in beside)}"
        reading.report.error("bad-prompt-file", Span(str(beside[0]), 1, 1, 1, 2), message, hint="keep one of them")
    return beside[0] if len(beside) == 1 else None


def check_prompt(directory: str | Path, reading: Reading) -> None:
    """Report what is wrong with the text of a prompt that has no exam."""
    file = the_prompt_file(directory, reading)
    if file is not None:
        path = str(file)
        text = reading.text_of(path, Scalar(path, shown(path), Span(path, 1, 1, 1, 2)))
        if text is not None:
            sections_of(path, text, reading.report)
