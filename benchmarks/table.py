#!/usr/bin/env python3
"""Every performance figure that agentv aims to hold, with its peers on the same machine at the same time, as one table.

    benchmarks/table.py --compare …/peers/compare.py
    benchmarks/table.py --compare …/peers/compare.py --rounds 5 --peers promptfoo,inspect --works startup,cases-1000

The works of the peers' own comparison are run through it, round by round in turn; it keeps every measurement in
`$PEERS_HOME/results.jsonl`, where this reads them. A run counts only if every case passed, as read from what the tool
wrote. `scale` is ours alone: 10,000, 100,000 and 1,000,000 cases from JSON lines, each of one process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

AGENTV = str(Path(sysconfig.get_path("scripts")) / "agentv")
RESULTS = Path(os.environ.get("PEERS_HOME", Path.home() / ".cache" / "agentv-peers")) / "results.jsonl"
OURS = "ours"
AIMS = {
    "startup": "0.1 s, 30 MB",
    "validate-1000": "0.5 s",
    "cases-1000": "0.4 s",
    "cases-10000": "1.0 s, 100 MB",
    "wait-1000": "2.3 s",
    "http-1000": "2.2 s",
}
"""Work → what agentv should take at most."""

ONCE = {"cases-10000"}
"""Works that take the peers minutes: one round does."""

SCALE = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Median:
    """Of one tool at one work. `problem`: why its runs do not count."""

    seconds: float
    megabytes: float
    problem: str | None = None


def compared(compare: Path, work: str, peers: str, rounds: int) -> dict[str, Median]:
    """Measurements of each tool."""
    before = RESULTS.stat().st_size if RESULTS.exists() else 0
    command = [sys.executable, str(compare), work, "--rounds", str(rounds), "--peers", peers, "--ours", AGENTV]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # the table says which peers failed
    runs: dict[str, list[dict[str, object]]] = defaultdict(list)
    with RESULTS.open("rb") as file:
        file.seek(before)
        for row in map(json.loads, file):
            runs[row["peer"]].append(row)
    return {peer: median(rows) for peer, rows in runs.items()}


def median(rows: list[dict[str, object]]) -> Median:
    problem = next((str(row["problem"]) for row in rows if row["problem"]), None)
    middle = {key: statistics.median(float(str(row[key])) for row in rows) for key in ("wall", "rss_mb")}
    return Median(middle["wall"], middle["rss_mb"], problem)


def scaled() -> Iterator[str]:
    """Our own time and memory as cases grow a hundredfold."""
    measure = Path(__file__).with_name("measure.py")
    for count in SCALE:
        ended = subprocess.run(
            [sys.executable, str(measure), f"lines-{count}", "--rounds", "1"],
            capture_output=True,
            text=True,
            check=True,
        )
        ours = next(line.split() for line in ended.stdout.splitlines() if line.startswith("agentv"))
        seconds = float(ours[1])
        yield f"{count:>9,} cases: {seconds:8.1f} s  {seconds / count * 1e6:6.0f} us a case  {ours[4]:>4} MB"


def table(found: dict[str, dict[str, Median]], peers: Iterable[str]) -> Iterator[str]:
    """A line per work: agentv's time, and the factor of each peer."""
    columns = ["work", "aim", "ours", *peers]
    lines = [columns]
    for work, tools in found.items():
        mine = tools.get(OURS)
        lines.append([work, AIMS[work], cell(mine), *(cell(tools.get(peer), mine) for peer in peers)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()


def cell(one: Median | None, mine: Median | None = None) -> str:
    if one is None:
        return "-"
    if one.problem:
        return "failed"
    ratio = f" ({one.seconds / mine.seconds:.1f} x)" if mine is not None and not mine.problem else ""
    return f"{one.seconds:.2f} s{ratio}, {one.megabytes:.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", type=Path, required=True, help="the peers' compare.py")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default="promptfoo,agentv-npm,inspect,pydantic-evals,deepeval,pytest")
    parser.add_argument("--works", default=",".join(AIMS), help="of " + ", ".join(AIMS))
    parser.add_argument("--scale", action="store_true", help="a million cases too")
    args = parser.parse_args()
    found = {}
    for work in args.works.split(","):
        found[work] = compared(args.compare, work, args.peers, 1 if work in ONCE else args.rounds)
        for peer, one in found[work].items():
            if one.problem:
                print(f"{work}: {peer}: {one.problem}", file=sys.stderr)
    print(*table(found, args.peers.split(",")), sep="\n")
    if args.scale:
        print(*scaled(), sep="\n")


if __name__ == "__main__":
    main()
