#!/usr/bin/env python3
"""Answers of `agentv view`: time to the first, time of a search, memory of the server; a live run with 50 viewers.

benchmarks/view.py 100 10000 1000000
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
from measure import SCRIPTS
from results import RUN_ID, make, results

from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import row_of

QUESTIONS = (
    ("list, first page", "/cases"),
    ("list, position 50 %", "/cases?from={middle}"),
    ("list, failed on one target", "/cases?status=failed&target=gpt"),
    ("list, by name", "/cases?order=name"),
    ("search, a word of nearly all", "/cases?q=provided"),
    ("search, two words of nearly all", "/cases?q=lamp+days"),
    ("search, a word of few", "/cases?q=%22too%20late%22"),
    ("search, part of an id", "/cases?q=se-9999"),
    ("search, nothing found", "/cases?q=zebra"),
    ("a trial", "/trials/7"),
    ("the run", ""),
)
VIEWERS = 50
ROWS = 100
PAUSE_S = 0.05


@contextmanager
def server(root: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server on a project, and its process."""
    command = [str(SCRIPTS / "agentv"), "view", "--no-open", "--port", "0"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1].rstrip("/"), process
        finally:
            process.terminate()


def megabytes(process: subprocess.Popen[str], what: str) -> float:
    """The memory of a server with its processes: `VmRSS` now, `VmHWM` at its peak."""
    children = Path("/proc", str(process.pid), "task", str(process.pid), "children").read_text().split()
    found = [Path("/proc", one, "status").read_text() for one in (str(process.pid), *children)]
    lines = [line for status in found for line in status.splitlines()]
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{what}:"))


def spent(process: subprocess.Popen[str]) -> float:
    """The processor seconds of a server with its processes: other work on the machine does not count."""
    children = Path("/proc", str(process.pid), "task", str(process.pid), "children").read_text().split()
    times = [Path("/proc", one, "stat").read_text().rsplit(")", 1)[1].split() for one in (str(process.pid), *children)]
    return sum(int(one[11]) + int(one[12]) for one in times) / os.sysconf("SC_CLK_TCK")


def proportional(process: subprocess.Popen[str]) -> float:
    """Megabytes of a server with its processes now, pages that several share counted once (PSS)."""
    children = Path("/proc", str(process.pid), "task", str(process.pid), "children").read_text().split()
    found = [Path("/proc", one, "smaps_rollup").read_text() for one in (str(process.pid), *children)]
    lines = [line for text in found for line in text.splitlines()]
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


@contextmanager
def sampled(process: subprocess.Popen[str]) -> Iterator[list[float]]:
    """Megabytes of a server with its processes, four times a second, as `proportional` counts them."""
    found, ended = [proportional(process)], Event()

    def sample() -> None:
        while not ended.wait(0.25):
            found.append(proportional(process))

    thread = Thread(target=sample)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def asked(client: httpx.Client, path: str) -> tuple[float, Any]:
    """Seconds, and the answer."""
    started = time.perf_counter()
    answer = client.get(path)
    seconds = time.perf_counter() - started
    return seconds, answer.raise_for_status().json()


def measure(root: Path, number: int) -> None:
    """Ask a server on a run with so many rows: the first time, and after a restart."""
    make(root, number)
    run = f"/api/runs/{RUN_ID}"
    print(f"\n{number:,} rows, load {os.getloadavg()[0]:.1f}")
    kept = root / ".agentv" / "results" / RUN_ID / "view.sqlite"
    with (
        server(root) as (address, process),
        httpx.Client(base_url=address, timeout=600) as client,
        sampled(process) as memory,
    ):
        started = time.perf_counter()
        seconds, found = asked(client, f"{run}/cases")
        print(f"  {'first answer, nothing indexed':<34}{seconds:8.3f} s, {found['total']:,} cases")
        while found["indexed"] < 1:
            time.sleep(1)
            _, found = asked(client, f"{run}/cases?limit=1")
        print(f"  {'all indexed after':<34}{time.perf_counter() - started:8.1f} s, processor {spent(process):.1f} s")
        while not kept.exists():
            time.sleep(0.1)
        print(f"  {'kept after':<34}{time.perf_counter() - started:8.1f} s, processor {spent(process):.1f} s")
        print(f"  {'memory, peak':<34}{max(memory):8.0f} MB; of each process {megabytes(process, 'VmHWM'):.0f} MB")
    with server(root) as (address, process), httpx.Client(base_url=address, timeout=600) as client:
        print(f"  {'started again; list of runs':<34}{asked(client, '/api/runs')[0]:8.3f} s")
        for name, path in QUESTIONS:
            before = spent(process)
            seconds, _ = asked(client, run + path.format(middle=number // 2))
            cpu = spent(process) - before
            again, _ = asked(client, run + path.format(middle=number // 2))
            print(f"  {name:<34}{seconds:8.3f} s, processor {cpu:.2f} s, again {again:.3f} s")
        print(f"  {'memory, peak':<34}{megabytes(process, 'VmHWM'):8.0f} MB")
        print(f"  {'memory, shared pages once':<34}{proportional(process):8.0f} MB")


async def viewer(client: httpx.AsyncClient, cursor: str, seen: list[tuple[str, float]]) -> None:
    """Note when each case arrives, until the run ends."""
    kind = ""
    async with client.stream("GET", f"/api/runs/{RUN_ID}/events", params={"after": cursor}) as answer:
        async for line in answer.aiter_lines():
            name, _, data = line.partition(": ")
            kind = data if name == "event" else kind
            if name != "data":
                continue
            told = json.loads(data)
            seen += [(one["id"], time.perf_counter()) for one in told.get("cases", ())]
            if kind == "state" and told["state"] == "ended":
                return


async def watched(address: str, run: Path, lines: list[bytes]) -> list[float]:
    """Seconds from a row written to its arrival, of all rows and viewers."""
    seen: list[tuple[str, float]] = []
    written: dict[str, float] = {}
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=httpx.Limits(max_connections=None)) as client:
        cursor = (await client.get(f"/api/runs/{RUN_ID}/cases")).json()["cursor"]
        with (run / "journal.jsonl").open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            viewers = [asyncio.create_task(viewer(client, cursor, seen)) for _ in range(VIEWERS)]
            await asyncio.sleep(2)
            with (run / "index.jsonl").open("ab", buffering=0) as file:
                for line in lines:
                    written[json.loads(line)["test_id"]] = time.perf_counter()
                    file.write(line)
                    await asyncio.sleep(PAUSE_S)
            await asyncio.sleep(1)
        await asyncio.gather(*viewers)
    if len(seen) != len(lines) * VIEWERS:
        raise SystemExit(f"{len(seen)} of {len(lines) * VIEWERS} rows arrived")
    return [arrived - written[case] for case, arrived in seen]


def live(root: Path) -> None:
    """Write rows while 50 viewers watch."""
    run = make(root, 1)
    (run / "summary.json").unlink()
    places = str(root)
    lines = [to_json(row_of(one, places)) + b"\n" for one in results(ROWS + 1, str(root))][1:]
    with server(root) as (address, process):
        delays = sorted(asyncio.run(watched(address, run, lines)))
        cut = statistics.quantiles(delays, n=100)
        print(f"\n{ROWS} rows to {VIEWERS} viewers, load {os.getloadavg()[0]:.1f}: written to received")
        print(f"  median {cut[49] * 1000:.0f} ms, 99 % {cut[98] * 1000:.0f} ms, worst {delays[-1] * 1000:.0f} ms")
        print(f"  {'memory, peak':<34}{megabytes(process, 'VmHWM'):8.0f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="*", default=[100, 10_000])
    for number in parser.parse_args().rows:
        with tempfile.TemporaryDirectory() as directory:
            measure(Path(directory), number)
    with tempfile.TemporaryDirectory() as directory:
        live(Path(directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
