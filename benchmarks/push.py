#!/usr/bin/env python3
"""Runs pushed to a server on this machine: 100,000 rows, the same again, and 1,000 rows more.

    benchmarks/push.py                              # SQLite
    benchmarks/push.py --postgresql                 # a PostgreSQL of its own, from Debian's packages
    benchmarks/push.py --rows 10000 --row-bytes 4000
    benchmarks/push.py --live 5                     # 5 pairs of runs of 10,000 cases, with and without a push
    benchmarks/push.py --rows 1000000 --end         # how long another run waits when this one ends

Aims: 15 s for 100,000 rows, 2 s for the same again. `copied` is when the server's copy of the run is complete too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from agentv.store.journal.answers import HEADER, row_checksum_line
from agentv.store.rows.reading import key_of_row, read_rows
from agentv.store.totals.summary import PlannedCounts, summarize

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
AGENTV = [sys.executable, "-m", "agentv"]
RUN_ID = "20261121T140322Z-7f3a"


def rows(first: int, count: int, row_bytes: int) -> bytes:
    """Rows whose texts compress about as answers do."""
    words = [f"word{number}" for number in range(2000)]
    chosen = random.Random(first)
    lines = []
    for number in range(first, first + count):
        text = " ".join(chosen.choices(words, k=max(1, (row_bytes - 250) // 9)))
        row = {
            "test_id": f"case-{number}",
            "suite": "benchmark",
            "eval_path": "evals/benchmark.eval.yaml",
            "target": "gpt",
            "status": "passed",
            "score": 1.0,
            "output": text,
            "scores": [],
            "key": f"{chosen.getrandbits(256):064x}",
            "schema_version": 1,
        }
        lines.append(json.dumps(row).encode() + b"\n")
    return b"".join(lines)


def add_rows(run: Path, first: int, count: int, row_bytes: int) -> None:
    """Append rows, and their checksums."""
    lines = rows(first, count, row_bytes)
    with (run / "index.jsonl").open("ab") as index, (run / "journal.jsonl").open("ab") as journal:
        index.write(lines)
        journal.write(b"" if first else HEADER)
        journal.writelines(row_checksum_line(key_of_row(one) or "", one) for one in lines[:-1].split(b"\n"))


def timed(what: str, *arguments: str, env: dict[str, str], cwd: Path) -> None:
    """Run a command and print how long it took."""
    began = time.perf_counter()
    done = subprocess.run([*AGENTV, *arguments], env=env, cwd=cwd, check=False, stderr=subprocess.PIPE, text=True)
    print(f"{what:>12}  {time.perf_counter() - began:6.2f} s  {done.stderr.strip()}")


def measure_live(pairs: int, cases: int, env: dict[str, str], project: Path) -> None:
    """Run the same cases with and without a push, in turn; the target answers at once, which no model does."""
    (project / "evals").mkdir(parents=True)
    assertion = [{"type": "contains", "value": "case"}]
    lines = ({"id": f"c{one}", "input": f"case {one} {'word ' * 30}", "assert": assertion} for one in range(cases))
    (project / "evals" / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (project / "evals" / "cases.eval.yaml").write_text("name: cases\ntarget: echo\ntests: cases.jsonl\n")
    took: dict[str, list[tuple[float, float]]] = {"--no-push": [], "": []}
    for number in range(pairs + 1):
        for option, found in took.items():
            command = [*AGENTV, "eval", "evals", "--quiet", *([option] if option else [])]
            began = time.perf_counter()
            done = subprocess.run(command, env=env, cwd=project, check=True, stderr=subprocess.PIPE, text=True)
            whole = time.perf_counter() - began
            results = max((project / ".agentv" / "results").glob("*/summary.json"), key=os.path.getmtime)
            assert "not pushed" not in done.stderr, done.stderr
            if number:  # the first pair only fills caches
                found.append((whole, json.loads(results.read_text())["duration_ms"] / 1000))
    print(f"{cases:,} cases, {pairs} pairs")
    for what, place in (("command", 0), ("trials", 1)):
        without, with_push = ([one[place] for one in took[option]] for option in ("--no-push", ""))
        ratios = [one / other for one, other in zip(with_push, without, strict=True)]
        print(
            f"{what:>12}  {statistics.median(without):6.2f} s without, {statistics.median(with_push):6.2f} s with; "
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--row-bytes", type=int, default=1_000)
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--live", type=int, metavar="PAIRS")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--end", action="store_true")
    given = parser.parse_args()
    with ExitStack() as closing:
        home = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="agentv-push-")))
        database = f"sqlite:///{home}/team.sqlite"
        if given.postgresql:
            from doubles.postgresql import postgres_server

            database = closing.enter_context(postgres_server()).new_database()
        run = home / "project" / ".agentv" / "results" / RUN_ID
        run.mkdir(parents=True)
        record = {"schema_version": 1, "run_id": RUN_ID, "started": "2026-11-21T14:03:22.000Z"}
        (run / "run.json").write_text(json.dumps(record))
        add_rows(run, 0, 0 if given.live else given.rows, given.row_bytes)
        serve = [*AGENTV, "serve", "--database", database, "--data", str(home / "copies"), "--port", "0"]
        token = subprocess.run(
            [*serve, "token", "create", "benchmark", "--project", "support"],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ).stdout.strip()  # fmt: skip
        server = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        closing.callback(server.wait)
        closing.callback(server.terminate)
        assert server.stdout is not None
        address = server.stdout.readline().strip() + "projects/support"
        # no other variable: the random rows may contain its value, and are then taken for a secret
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "AGENTV_TOKEN": token, "AGENTV_REMOTE": address}
        if given.live:
            measure_live(given.live, given.cases, env, home / "live")
            return
        print(f"{given.rows:,} rows, {(run / 'index.jsonl').stat().st_size / 1e6:.0f} MB, {database.partition(':')[0]}")
        began = time.perf_counter()
        timed("push", "push", env=env, cwd=home / "project")
        copy = home / "copies" / "support" / ".agentv" / "results" / RUN_ID / "index.jsonl"
        while not copy.exists() or copy.stat().st_size < (run / "index.jsonl").stat().st_size:
            time.sleep(0.01)
        print(f"{'copied':>12}  {time.perf_counter() - began:6.2f} s")
        if given.end:
            measure_end(run, copy.parent, env, server.pid)
            return
        timed("again", "push", env=env, cwd=home / "project")
        add_rows(run, given.rows, 1000, given.row_bytes)
        timed("1,000 more", "push", env=env, cwd=home / "project")
        print(f"{'server':>12}  {max(map(peak_mb, processes_of(server.pid))):6.0f} MB at most")


def measure_end(run: Path, copy: Path, env: dict[str, str], server: int) -> None:
    """Push the totals of a run, then another run: how long until its copy is complete and the totals are known."""
    totals = summarize(read_rows(run / "index.jsonl"), run_id=RUN_ID, planned=PlannedCounts(), duration_ms=1.0)
    (run / "summary.json").write_text(json.dumps(totals.as_json()))
    other = run.with_name("20261122T140322Z-7f3a")
    other.mkdir()
    record = {"schema_version": 1, "run_id": other.name, "started": "2026-11-22T14:03:22.000Z"}
    (other / "run.json").write_text(json.dumps(record))
    add_rows(other, 0, 10, 1000)
    timed("totals", "push", RUN_ID, env=env, cwd=run.parents[2])
    ended = time.perf_counter()
    timed("another run", "push", other.name, env=env, cwd=run.parents[2])
    pushed, memory = time.perf_counter(), 0.0
    seen: dict[str, float] = {}
    while len(seen) < 2:
        time.sleep(0.05)
        memory = max(memory, sum(map(proportional_mb, processes_of(server))))
        if (copy.with_name(other.name) / "copied.json").exists():
            seen.setdefault("other copied", time.perf_counter() - pushed)
        if (copy / "summary.json").exists():
            seen.setdefault("totals known", time.perf_counter() - ended)
    for what, seconds in seen.items():
        print(f"{what:>12}  {seconds:6.2f} s")
    print(f"{'server':>12}  {memory:6.0f} MB at most")


def proportional_mb(pid: int) -> float:
    """The memory of a process now, pages that several share divided by their number."""
    rollup = Path(f"/proc/{pid}/smaps_rollup")
    with suppress(OSError):
        found = [one for one in rollup.read_text().splitlines() if one.startswith("Pss:")]
        return int(found[0].split()[1]) / 1024
    return 0.0


def processes_of(pid: int) -> list[int]:
    """A command and the processes that it runs in, and theirs."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, children.read_text().split())
    return found


def peak_mb(pid: int) -> float:
    """The most memory that a process had."""
    status = Path(f"/proc/{pid}/status")
    found = [one for one in status.read_text().splitlines() if one.startswith("VmHWM")] if status.exists() else []
    return int(found[0].split()[1]) / 1024 if found else 0.0


if __name__ == "__main__":
    main()
