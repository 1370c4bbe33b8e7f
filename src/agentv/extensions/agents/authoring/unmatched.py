"""Globs of `protected` that protect no file, found where the files of a workspace are known when it is loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, Node
from agentv.model.suite.workspace import CopiedFiles
from agentv.model.values.path_globs import GlobError, check_glob, glob_pattern

_MOST_FILES = 20_000
_OTHER_SOURCES = ("repositories", "files", "setup", "hooks", "existing")
"""What may add files that are not known yet."""

_ANYWHERE = ("**/", "*")
_CONFIGURES_TESTS = frozenset({"conftest.py", "pytest.ini", "sitecustomize.py", "usercustomize.py"})
"""Files that are protected so that no agent adds them."""


def report_unmatched(parts: Mapping[str, Any], node: Node, reading: Reading) -> None:
    """Warn of globs without a file. An agent may not add such files either, so that some are written for that.

    Args:
        parts: of one workspace mapping, as they are read.
        node: `protected`.
        reading: of the workspace.
    """
    template = parts.get("template")
    hidden = parts.get("hidden", ())
    if not isinstance(template, CopiedFiles) or any(parts.get(key) for key in _OTHER_SOURCES):
        return
    if any(one.is_patch for one in hidden):
        return
    names = tuple(islice(_names(template, hidden), _MOST_FILES))
    if len(names) == _MOST_FILES:
        return
    items = node.items if isinstance(node, ListNode) else [node]
    for glob, item in zip(parts["protected"], items, strict=False):
        if not _is_for_files(glob) or any(map(glob_pattern(glob, below=True).fullmatch, names)):
            continue
        first = {name.partition("/")[0] for name in names}
        begin = glob.partition("/")[0]
        hint = None if begin in first else did_you_mean(begin, first)
        reading.report.warning("unmatched-glob", item, f"no file of the workspace matches '{glob}'", hint=hint)


def _is_for_files(glob: str) -> bool:
    """Whether a glob is meant for files that are there."""
    try:
        check_glob(glob)
    except GlobError:  # reported already
        return False
    return not glob.startswith(_ANYWHERE) and glob.rpartition("/")[2] not in _CONFIGURES_TESTS


def _names(template: CopiedFiles, hidden: tuple[CopiedFiles, ...]) -> Iterator[str]:
    for copied in (template, *hidden):
        if Path(copied.source).is_dir():
            for folder, folders, files in os.walk(copied.source):
                if ".git" in folders:
                    folders.remove(".git")
                yield from (str(Path(copied.path, os.path.relpath(folder, copied.source), name)) for name in files)
        else:
            yield copied.path
