"""`agentv prompt init`: a new prompt with its exam."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentv.app.prompts.library import Library
from agentv.authoring.prompt_library import LIBRARY, prompt_directories
from agentv.authoring.source.files import PROMPT_FILES, repository_root, shown
from agentv.errors import UsageError

PromptFormat = Literal["xml", "md", "txt"]

_SHIPPED = Path(__file__).parent / "new"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PLACE_OF_ID = "PROMPT_ID"


@dataclass(frozen=True, slots=True)
class Made:
    """Absolute paths: the prompt's directory, written files, and existing files that were left unchanged."""

    directory: str
    written: tuple[str, ...]
    kept: tuple[str, ...]


def make_prompt(name: str, form: PromptFormat, library: Library) -> Made:
    """Write the files that do not exist yet. Existing files are not changed.

    Raises:
        LoadError: the project's config is wrong.
        UsageError: the name is not a valid id, or another prompt has it.
        OSError: a file cannot be written.
    """
    if not _ID.fullmatch(name):
        raise UsageError(
            f"'{name}' is not a valid prompt id",
            "an id is a directory name: letters, digits, '-', '_' and '.', starting with a letter or a digit",
        )
    place = library.place or str(Path(repository_root(library.working)) / LIBRARY)
    directory = Path(place) / name
    _refuse_twins(name, directory, library)
    written, existing = [], []
    for path, shipped in _files(directory, form):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (_SHIPPED / shipped).read_text(encoding="utf-8").replace(_PLACE_OF_ID, name)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            existing.append(str(path))
        else:
            written.append(str(path))
    return Made(str(directory), tuple(written), tuple(existing))


def _files(directory: Path, form: PromptFormat) -> Iterator[tuple[Path, str]]:
    """Each file with the one that is shipped for it. A prompt has one text: that of another format stays."""
    prompt = next((name for name in PROMPT_FILES if (directory / name).exists()), f"prompt.{form}")
    yield directory / prompt, f"prompt.{form}"
    yield directory / "meta.yaml", "meta.yaml"
    exam = directory / "eval.yaml"
    yield exam if exam.exists() else directory / "eval.yml", "eval.yml"
    yield directory / "examples" / "happy-path" / "inputs.yml", "inputs.yml"


def _refuse_twins(name: str, directory: Path, library: Library) -> None:
    """Two prompts of one id could not be distinguished."""
    place = library.place
    for prompt in library.all() if place is not None and prompt_directories(place) else ():
        if prompt.id == name and prompt.directory != str(directory):
            raise UsageError(f"the id '{name}' is already used by {shown(prompt.directory)}", "choose another id")
