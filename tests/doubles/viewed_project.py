"""A project with runs, and a client of its `agentv view`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from agentv.app.results.project import Project
from agentv.extensions.view.app import application
from agentv.extensions.view.state import ViewOptions, local_context
from doubles.stored_runs import write_run

PORT = 4280
ADDRESS = f"http://127.0.0.1:{PORT}"


def add_run(root: Path, run_id: str, results: Any, **record: Any) -> Path:
    path = root / ".agentv" / "results" / run_id
    write_run(path, results, record)
    return path


@contextmanager
def viewed(root: Path, options: ViewOptions | None = None, named: tuple[Path, ...] = ()) -> Iterator[TestClient]:
    """Yield a client of a project's server that sends the headers of the server's own pages."""
    context = local_context(Project(root, named), options or ViewOptions())
    headers = {"X-Agentv-Token": context.token, "Origin": ADDRESS} if context.token else {}
    with TestClient(application(context, PORT), base_url=ADDRESS, headers=headers) as client:
        yield client
