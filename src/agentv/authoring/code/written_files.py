"""The files that a script which grades may write itself: an answer file, a log, a cache that its command names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from agentv.authoring.code.code_imports import is_code, with_imports
from agentv.authoring.code.command_files import homes_of_command, paths_of_command
from agentv.authoring.source.files import is_file
from agentv.model.suite.search_paths import SearchPaths
from agentv.registry.fields import Command

_PYTHON = re.compile(
    rb"""(?<!\w)["'](?:[rbt]?[wax][bt]?\+?|[rbt]{1,2}\+[bt]?)["']|\.write_(?:text|bytes)\(|\bos\.(?:open|replace|rename|link)\b"""
    rb"""|\bshutil\b|\bsqlite3\b|\bshelve\b|\bdbm\b|FileHandler|\bfilename\s*=|\.to_(?:csv|json|parquet|pickle|excel)\("""
    rb"""|\.save\w*\(|\bsubprocess\b|\bos\.system\b"""
)
_SCRIPT = re.compile(rb"\b(?:write|append|copy|rename|createWrite)\w*\(|\bchild_process\b|\bBun\.")
_SHELL = re.compile(rb">|\b(?:tee|mv|cp|touch|dd|install|sed\s+-\w*i)\b")
_LARGEST = 1 << 20


def written_by(command: Command, search: SearchPaths) -> Iterator[str]:
    """The data files that a command names and whose content its code may change; none where its code only reads.

    Code, and what is named by `fingerprint`, are never among them.
    """
    named = [path for path in paths_of_command(command, search) if is_file(path)]
    homes = homes_of_command(command, search)
    code = {path for root in named if is_code(root) for path in with_imports(root, homes)}
    if any(map(_may_write, code)):
        yield from (path for path in named if path not in code and not is_code(path))


def _may_write(path: str) -> bool:
    try:
        state = os.stat(path)  # noqa: PTH116  # for every file of every script
    except OSError:
        return False
    return _writes(path, state.st_mtime_ns, state.st_ctime_ns, state.st_size)


@lru_cache(maxsize=1024)
def _writes(path: str, _written_ns: int, _changed_ns: int, size: int) -> bool:
    if size > _LARGEST:
        return False
    try:
        data = Path(path).read_bytes()
    except OSError:
        return False
    if path.endswith(".py"):
        return _PYTHON.search(data) is not None
    return (_SCRIPT if path.endswith(("js", "ts", "jsx", "tsx")) else _SHELL).search(data) is not None
