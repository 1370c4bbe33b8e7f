"""Templates that no eval file includes (SPEC section 7.3)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from agentv.authoring.source.files import templates_in
from agentv.errors import Diagnostic
from agentv.model.values.span import Span

_HOME = (".agentv", "templates")


def unused_templates(directories: Iterable[str], read: Collection[str]) -> Iterator[Diagnostic]:
    """A warning for every template below the directories that was not read.

    Only for directories: with single files, other files may include the template.

    Args:
        directories: as given.
        read: absolute paths of all files that the suites below these directories read.
    """
    for path in sorted({path for directory in directories for path in _templates_below(directory)} - set(read)):
        message = "no eval file includes this template"
        yield Diagnostic("unused-template", message, Span(path, 1, 1, 1, 2), "warning")


def _templates_below(directory: str) -> Iterator[str]:
    for folder, inside, _ in os.walk(directory):
        home = Path(folder, *_HOME)
        if _HOME[0] in inside:
            yield from templates_in(str(home.absolute())).values()
        inside[:] = [name for name in inside if not name.startswith(".") and name != "node_modules"]
