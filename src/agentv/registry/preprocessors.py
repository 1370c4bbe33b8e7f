"""Preprocessors: commands that turn files in an answer into text before a rubric is judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Struct

from agentv.registry.fields import Command, Declared, Doc, Issue, Nonempty, Seconds, Text

MEDIA_TYPES = {
    "csv": "text/csv",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "sql": "application/sql",
    "txt": "text/plain",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
"""Short names of media types, which are the suffixes of such files."""


def media_type_of(written: str) -> str:
    """A media type, given whole or by its short name."""
    name = written.strip().lower()
    return MEDIA_TYPES.get(name.removeprefix("."), name)


class Preprocessor(Declared, Struct, frozen=True):
    """A command that turns files of one type into text: it reads JSON with `path` on stdin and prints the text."""

    type: Annotated[Text, Nonempty(), Doc("the media type of the files, or a suffix such as xlsx")]
    command: Annotated[Command, Doc("a list of words, or a shell command")]
    timeout_s: Annotated[Seconds, Doc("time limit for one file, in seconds")] = 60.0

    def validate(self) -> Iterable[Issue]:
        """A type that no file can have."""
        if "/" not in self.type and media_type_of(self.type) not in MEDIA_TYPES.values():
            known = ", ".join(MEDIA_TYPES)
            yield Issue(
                ("type",), f"'{self.type}' is not a media type", hint=f"write one such as text/csv, or one of {known}"
            )
