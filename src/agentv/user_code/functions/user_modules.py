"""The names of modules that are loaded by the path of their file, and how another process finds them.

A process that `multiprocessing` starts imports the functions that it is sent by the names of their modules.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import MetaPathFinder

_PREFIX = "agentv_user_"


def module_name(file: Path) -> str:
    """What the module of a file is called: two files of one name are two modules."""
    return f"{_PREFIX}{hashlib.sha256(str(file).encode()).hexdigest()[:8]}_{file.stem}"


class _UserModules:
    """Finds such a module by its name: its directory was put on Python's path when it was first loaded.

    A `MetaPathFinder` by what it does: to load that class would cost every command a hundredth of a second.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The file on the path that has this name."""
        del path, target
        if not fullname.startswith(_PREFIX):
            return None
        stem = fullname.removeprefix(_PREFIX).partition("_")[2]
        files = (Path(directory, f"{stem}.py") for directory in sys.path)
        found = next((file for file in files if module_name(file) == fullname and file.is_file()), None)
        return None if found is None else spec_from_file_location(fullname, found)


def find_user_modules() -> None:
    """Have this process find the modules that the one that started it has loaded."""
    finder: MetaPathFinder = _UserModules()  # type: ignore[assignment]  # as Python itself takes it
    sys.meta_path.append(finder)
