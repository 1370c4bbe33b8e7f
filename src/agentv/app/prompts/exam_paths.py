"""`agentv prompt eval`: selection of the exams to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentv.app.prompts.library import Library
from agentv.authoring.prompt_library.files import exam_of
from agentv.authoring.source.files import shown
from agentv.errors import UsageError


@dataclass(frozen=True, slots=True)
class ChosenExams:
    """Paths of exams; `without` are the ids of prompts that have none."""

    paths: tuple[str, ...]
    without: tuple[str, ...] = ()


def exams_of(names: Sequence[str], *, everything: bool) -> ChosenExams:
    """The exams of the named prompts, or of all; a path to a file with another name is that exam.

    Raises:
        LoadError: the project's config is wrong.
        UsageError: no prompt is named, a named prompt does not exist, or it has no exam.
    """
    if everything and names:
        raise UsageError("--all and names conflict; use one of them")
    if not everything and not names:
        raise UsageError("no prompt given", "give prompts, or use --all")
    library = Library.here()
    if everything:
        exams = {one.id: exam_of(one.directory) for one in library.all()}
        return _some(tuple(path for path in exams.values() if path is not None), exams)
    return ChosenExams(tuple(dict.fromkeys(_exam(name, library) for name in names)))


def _exam(name: str, library: Library) -> str:
    path = Path(library.working, name)
    if path.is_file():
        return str(path)
    prompt = library.one(name)
    exam = exam_of(prompt.directory)
    if exam is None:
        hint = f"create one with agentv prompt init {prompt.id}"
        raise UsageError(f"'{prompt.id}' has no exam: there is no eval.yml in {shown(prompt.directory)}", hint)
    return exam


def _some(paths: tuple[str, ...], exams: dict[str, str | None]) -> ChosenExams:
    if not paths:
        raise UsageError("no prompt in the library has an exam")
    return ChosenExams(paths, tuple(name for name, path in exams.items() if path is None))
