"""`agentv results pin`: the runs that later ones are compared with."""

from __future__ import annotations

from pathlib import Path

from agentv.app.results.finding import find_run
from agentv.app.results.place import RESULTS, place_holding
from agentv.authoring.source.files import shown
from agentv.errors import UsageError
from agentv.store.files.directory import read_document, results_directory
from agentv.store.files.encoding import to_document
from agentv.store.files.whole_file import write_whole

PINS = "pinned.json"
"""In the directory of results: `{"runs": [id, …]}`, the newest pin last."""


def pinned_runs(results: Path) -> list[str]:
    """Ids of the pinned runs, the newest pin last.

    Raises:
        StoreError: the file cannot be read.
    """
    if not (results / PINS).exists():
        return []
    found = read_document(results / PINS).get("runs")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def pin(named: str, *, remove: bool = False) -> str:
    """Pin a run of the project, or remove its pin; return its id.

    Raises:
        UsageError: there is no such run.
        StoreError: the file cannot be read or written.
    """
    root = place_holding(RESULTS)
    run = find_run(named, root, action="pin")
    results = results_directory(root)
    if run.resolve().parent != results.resolve():
        raise UsageError(f"cannot pin {run}: it is not in {shown(str(results))}")
    others = [one for one in pinned_runs(results) if one != run.name]
    write_whole(results / PINS, [to_document({"runs": [*others, *([] if remove else [run.name])]}).decode()])
    return run.name
