"""A team server on a real socket, over SQLite, and runs to push to it."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from agentv.extensions.team.database import Database
from agentv.extensions.team.endpoints import TeamState
from agentv.extensions.team.opening import migrate, open_database
from agentv.extensions.team.people import Tokens, create_project
from agentv.extensions.team.serving import listening_socket, public_addresses, team_server
from agentv.store.files.directory import is_being_written
from agentv.store.journal.answers import HEADER, row_checksum_line
from agentv.store.rows.reading import key_of_row

RUN_ID = "20261121T140322Z-7f3a"


class TeamServer:
    """A server; `state` is the state of its endpoints, `address` the address of its project `support`."""

    def __init__(self, directory: Path, proxies: Sequence[str] = (), host: str = "127.0.0.1") -> None:
        database = open_database(f"sqlite:///{directory}/team.sqlite")
        migrate(database)
        self._listening = listening_socket(host, 0)
        port = self._listening.getsockname()[1]
        self.state = TeamState(database, public_addresses((), host, port), proxies=proxies)
        self.data = directory / "copies"
        self.root = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self.address = f"{self.root}/projects/support"
        self._server = team_server(self.state, self.data)
        self._thread = Thread(target=self._server.run, kwargs={"sockets": [self._listening]}, daemon=True)
        self._thread.start()

    def token(self, *scopes: str, project: str | None = "support") -> str:
        return Tokens(self.state.database).create("test", project, scopes or ("push", "read"), None, "test")[0]

    @property
    def connections(self) -> set[Any]:
        return self._server.server_state.connections

    def close(self) -> None:
        self._server.should_exit = True  # graceful: the application closes its open runs
        self._thread.join(10)
        self.state.database.close()


@contextmanager
def team_server_in(directory: Path, proxies: Sequence[str] = (), host: str = "127.0.0.1") -> Iterator[TeamServer]:
    server = TeamServer(directory, proxies, host)
    try:
        while not server._server.started:  # it listens already; `close` needs it to have started
            time.sleep(0.01)
        yield server
    finally:
        server.close()


def is_complete(copy: Path) -> bool:
    """Whether a copy of a run exists and is no longer being written."""
    return (copy / "copied.json").exists() and not is_being_written(copy)


def with_project(database: Database, name: str) -> None:
    """Create a project if it is missing."""
    with database.transaction() as transaction:
        create_project(transaction, name, "tester")


def row(number: int, text: str = "x") -> bytes:
    trial = {"test_id": f"case {number}", "target": "gpt", "key": f"key {number}", "output": text, "status": "passed"}
    told = {"suite": "s", "eval_path": "s.eval.yaml", "score": 1.0, "scores": [], "schema_version": 1}
    return json.dumps({**trial, **told}).encode() + b"\n"


def write_run(directory: Path, *rows: bytes, run_id: str = RUN_ID) -> Path:
    run = directory / ".agentv" / "results" / run_id
    run.mkdir(parents=True, exist_ok=True)
    (run / "run.json").write_text(
        json.dumps({"schema_version": 1, "run_id": run_id, "started": "2026-11-21T14:03:22Z"})
    )
    write_rows(run, *rows)
    return run


def write_rows(run: Path, *rows: bytes) -> None:
    """Write the rows of a run with their checksums."""
    (run / "index.jsonl").write_bytes(b"".join(rows))
    whole = [one.rstrip(b"\n") for one in rows if one.endswith(b"\n")]
    sums = [row_checksum_line(key_of_row(one) or "", one) for one in whole]
    (run / "journal.jsonl").write_bytes(b"".join([HEADER, *sums]))
