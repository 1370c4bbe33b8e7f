"""`agentv validate`: every mistake in every file, without running anything."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.app.wiring import registries
from agentv.errors import Diagnostic, LoadError
from agentv.spec.load import LoadRequest, load


def validate(paths: tuple[str, ...], process_env: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """All that is wrong, sorted by file and place.

    Raises:
        UsageError: a path does not exist, or a directory holds no eval file.
    """
    request = LoadRequest(paths, process_env=process_env, for_run=False)
    try:
        return load(request, registries()).diagnostics
    except LoadError as error:
        return error.diagnostics
