"""Dialects: the files of other tools, as registered under `DIALECTS`.

A dialect of documents translates the nodes of a file into those of an eval file; the reader knows only these. A
dialect of samples has cases without assertions, so its files are only converted.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import MapNode, Node
from agentv.authoring.source.report import Report


class Dialect(ABC):  # the two kinds below have methods to implement
    """The files of another tool.

    Attributes:
        title: what a file is, as in "this is a promptfoo configuration", or what it contains.
    """

    title: str

    @staticmethod
    def note(path: str, title: str) -> str:
        """`promptfooconfig.yaml is read as a promptfoo configuration`."""
        return f"{os.path.relpath(path)} is read as {title}"

    def refuse(self, path: Path) -> None:  # noqa: B027  # most tools have no such files
        """Refuse a file of the tool that is recognized and cannot be read.

        Raises:
            UsageError: it is one.
        """


class Translation(Struct, frozen=True):
    """A file in the words of an eval file.

    Attributes:
        root: the outermost mapping of an eval file. Every node keeps the position that it was written at.
        not_missing: keys whose absence is not reported: they are misplaced or invalid, which is reported already.
        own_paths: paths are relative to the file, whichever other file mentions them.
        home: the directory that paths are relative to; None: that of the file.
        reads_on: after an error in the translation, the rest can be read as if it were whole; if not, errors that may
            follow from the first ones are omitted.
    """

    root: MapNode
    not_missing: frozenset[str] = frozenset()
    own_paths: bool = False
    home: str | None = None
    reads_on: bool = False


class Surroundings(Struct, frozen=True):
    """What a translation depends on besides the file.

    Attributes:
        calls: functions that return cases are called; else they are only looked for.
        agents: whether agents answer a file that names no target.
    """

    calls: bool
    agents: Callable[[], bool]


class DocumentDialect(Dialect):
    """A dialect whose files are YAML or JSON documents with cases."""

    @abstractmethod
    def claims(self, path: str, root: Node, data: bytes) -> bool:
        """Whether a file is of this dialect. Called where a sign of the dialect fits.

        Args:
            path: absolute.
            root: its outermost node.
            data: its bytes.
        """

    @abstractmethod
    def translate(self, path: str, root: Node, reading: Reading, around: Surroundings) -> Translation | None:
        """The canonical nodes of a file, or None after reporting why.

        What has no equivalent and could change a verdict is an error at its place, what could not is a hint. Nothing
        is written, and files are read through `reading.reader`.

        Args:
            path: absolute.
            root: its outermost node.
            reading: reads files, and gets what is wrong.
            around: what else it depends on.
        """


class SampleDialect(Dialect):
    """A dialect whose files hold records, recognized by the keys of the first one, or whose tasks are directories.

    Attributes:
        reads_directories: what it converts is a directory.
    """

    reads_directories: bool = False

    def cases(self, path: str, report: Report) -> Sequence[MapNode] | None:  # noqa: ARG002  # most need --assert
        """The cases of a file that `tests:` names; what is wrong is reported. None: it must be converted first.

        Raises:
            OSError: the file cannot be read.
        """
        return None

    @abstractmethod
    def convert(self, source: Path, options: Mapping[str, Any]) -> int:
        """Write a file as an eval file, as `agentv convert` with these options does. Return the exit status.

        Raises:
            AgentvError: it is invalid, or cannot be converted as the options say.
            OSError: a file cannot be read or written.
        """
