"""`agentv view` as a process, with clients on loopback."""

import fcntl
import json
import signal
import threading
from contextlib import contextmanager

import httpx

from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import row_of
from doubles.trials import ROOT, finished, trial
from doubles.viewed_project import add_run

RUN = "20261121T140322Z-7f3a"
EVENTS = f"/api/runs/{RUN}/events"


@contextmanager
def served(project, *words):
    process = project.start("view", "--no-open", "--port", "0", *words)
    try:
        address = process.stdout.readline().split()[-1]
        with httpx.Client(base_url=address, timeout=120) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def events(answer):
    """Yield the events of a stream: name, id, data."""
    found = {}
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if name in ("event", "id", "data"):
            found[name] = value
        elif not line and "data" in found:
            yield found["event"], found.get("id"), json.loads(found["data"])
            found = {}


class Reader(threading.Thread):
    """Reads events until the run ends, and reconnects after each one, as a browser does."""

    def __init__(self, client, cursor, *, restless):
        super().__init__()
        self.client, self.cursor, self.restless = client, cursor, restless
        self.seen, self.states = [], []
        self.connected = threading.Event()

    def run(self):
        while "ended" not in self.states:
            self.read()

    def read(self):
        with self.client.stream("GET", EVENTS, headers={"Last-Event-ID": self.cursor}) as answer:
            for name, cursor, data in events(answer):
                self.connected.set()
                self.cursor = cursor or self.cursor
                self.seen += [one["id"] for one in data.get("cases", ())]
                self.states += [data["state"]] if name == "state" else []
                if "ended" in self.states or (self.restless and name == "rows"):
                    return


def test_readers_of_a_live_run_miss_nothing_and_it_ends_at_once(project):
    run = add_run(project.path, RUN, [finished(trial=trial("first"))], planned={"cases": 41, "trials": 41})
    rows = [to_json(row_of(finished(trial=trial(f"case-{at}")), ROOT)) + b"\n" for at in range(40)]
    with served(project) as (process, client), (run / "journal.jsonl").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (listed,) = client.get("/api/runs").json()["runs"]
        assert [listed[key] for key in ("state", "done", "planned", "pass_rate")] == ["running", 1, 41, 1.0]
        cursor = client.get(f"/api/runs/{RUN}").json()["cursor"]
        readers = [Reader(client, cursor, restless=restless) for restless in (False, True, True)]
        for reader in readers:
            reader.start()
            assert reader.connected.wait(10)
        with (run / "index.jsonl").open("ab", buffering=0) as file:
            for line in rows:
                file.write(line[:50])
                file.write(line[50:])
        fcntl.flock(lock, fcntl.LOCK_UN)
        for reader in readers:
            reader.join(20)
            assert reader.seen == [f"case-{at}" for at in range(40)]
        with client.stream("GET", EVENTS) as open_stream:
            assert open_stream.status_code == 200
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, "")
