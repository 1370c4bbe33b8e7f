#!/usr/bin/env python3
"""Rows of a run that goes on: from a row written here to its event in a page of a team's server.

    benchmarks/push_live.py                 # SQLite, one server
    benchmarks/push_live.py --postgresql    # pushed to one server, watched on another one with the same database

`pushed at once` is the way from this machine through the server; `agentv eval` looks for new rows every 0.05 s,
and sends a batch 0.1 s after the one before at the earliest, more rarely in a long run and while many rows come.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Queue
from threading import Thread

import httpx
from push import AGENTV, RUN_ID, add_rows

from agentv.extensions.team.connection import Connection
from agentv.extensions.team.live import LivePush
from agentv.extensions.team.pushing import RunPush, redactor_of
from agentv.extensions.team.remote import Remote

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


@contextmanager
def server(database: str, data: Path) -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    command = [*AGENTV, "serve", "--database", database, "--data", str(data), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def watch(address: str, token: str, events: Queue[tuple[float, str]]) -> None:
    """Put the time of every event of a run, and its data, into a queue."""
    headers = {"Authorization": f"Bearer {token}"}
    with (
        suppress(httpx.TransportError),  # at the end the server is gone
        httpx.stream("GET", address, headers=headers, timeout=None) as answer,  # it goes on
    ):
        for line in answer.iter_lines():
            if line.startswith(("event: ", "data: ")):
                events.put((time.perf_counter(), line))


def waited(events: Queue[tuple[float, str]], text: str) -> float:
    """When an event with a text came."""
    while True:
        moment, line = events.get(timeout=10)
        if text in line:
            return moment
        if line == "event: reset":
            print("reset")


@contextmanager
def going_on(project: Path) -> Iterator[Path]:
    """The directory of a run with one row, which goes on meanwhile."""
    run = project / ".agentv" / "results" / RUN_ID
    run.mkdir(parents=True)
    record = {"schema_version": 1, "run_id": RUN_ID, "started": "2026-11-21T14:03:22Z", "planned": {"trials": 99}}
    (run / "run.json").write_text(json.dumps(record))
    add_rows(run, 0, 1, 500)
    with (run / "journal.jsonl").open("rb") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        yield run


def told(what: str, seconds: list[float]) -> None:
    """Print a row of the result."""
    one = sorted(seconds)
    print(f"{what:>15}  median {statistics.median(one):.3f} s, largest {one[-1]:.3f} s, of {len(one)} rows")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--postgresql", action="store_true")
    given = parser.parse_args()
    with ExitStack() as closing:
        home = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="agentv-live-")))
        database = f"sqlite:///{home}/team.sqlite"
        if given.postgresql:
            from doubles.postgresql import postgres_server

            database = closing.enter_context(postgres_server()).new_database()
        run = closing.enter_context(going_on(home / "project"))
        create = [*AGENTV, "serve", "--database", database, "token", "create", "t", "--project", "support"]
        created = subprocess.run(
            [*create, "--scope", "push", "--scope", "read"],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        token = created.stdout.strip()
        pushed_to = closing.enter_context(server(database, home / "a"))
        watched = closing.enter_context(server(database, home / "b")) if given.postgresql else pushed_to
        remote = Remote.of(f"{pushed_to}projects/support", token)
        connection = closing.enter_context(Connection(remote))
        push = RunPush(run, connection, redactor_of({}, token))
        push.push_new_rows()
        page = f"{watched}projects/support/api/runs/{RUN_ID}"
        while httpx.get(page, headers={"Authorization": f"Bearer {token}"}).status_code != 200:
            time.sleep(0.05)
        events: Queue[tuple[float, str]] = Queue()
        Thread(target=watch, args=(f"{page}/events", token, events), daemon=True).start()
        waited(events, '"running"')
        print(f"{'2 servers' if given.postgresql else '1 server'}, {database.partition(':')[0]}")
        number = 1
        at_once: list[float] = []
        for _ in range(given.rows):
            time.sleep(random.uniform(0.1, 0.4))
            began = time.perf_counter()
            add_rows(run, number, 1, 500)
            push.push_new_rows()
            at_once.append(waited(events, f'"case-{number}"') - began)
            number += 1
        told("pushed at once", at_once)
        live = LivePush(remote, {}, print)
        live.start(run)
        time.sleep(1)
        as_eval: list[float] = []
        for _ in range(given.rows):
            time.sleep(random.uniform(0.1, 0.4))
            began = time.perf_counter()
            add_rows(run, number, 1, 500)
            as_eval.append(waited(events, f'"case-{number}"') - began)
            number += 1
        told("by agentv eval", as_eval)


if __name__ == "__main__":
    main()
