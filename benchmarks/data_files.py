#!/usr/bin/env python3
"""Time, processor time and peak memory of `agentv validate` on the same cases in CSV, Parquet, Arrow and Excel.

    benchmarks/data_files.py 10000
    benchmarks/data_files.py 1000000 --formats csv parquet

Six columns: two texts, a number, a date, a list (as text in CSV and Excel) and what is expected. Needs the extra
`data`. A round counts only if the file is valid.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

AGENTV = str(Path(sysconfig.get_path("scripts")) / "agentv")
FORMATS = ("csv", "parquet", "feather", "xlsx")
NAMES = ("item", "question", "days", "bought", "tags", "__expected")
SUITE = "target: echo\ninput: '{{ item }}: {{ question }}'\ntests: cases.SUFFIX\n"
ROWS_AT_ONCE = 10_000


def rows(number: int) -> Iterator[tuple[Any, ...]]:
    day = date(2024, 1, 1)
    for place in range(number):
        question = f"Can I return the lamp that I bought {place % 30} days ago? " * 3
        tags = [f"area-{place % 7}", "refunds"]
        yield f"lamp {place}", question, place % 30, day + timedelta(days=place % 365), tags, f"contains: lamp {place}"


def batches(number: int) -> Iterator[list[tuple[Any, ...]]]:
    some: list[tuple[Any, ...]] = []
    for row in rows(number):
        some.append(row)
        if len(some) == ROWS_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def as_texts(row: tuple[Any, ...]) -> list[Any]:
    return [json.dumps(cell) if isinstance(cell, list) else cell for cell in row]


def write_csv(path: Path, number: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows(as_texts(row) for row in rows(number))


def write_arrow(path: Path, number: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = (pa.string(), pa.string(), pa.int64(), pa.date32(), pa.list_(pa.string()), pa.string())
    schema = pa.schema(list(zip(NAMES, kinds, strict=True)))
    parquet = path.suffix == ".parquet"
    with pq.ParquetWriter(path, schema) if parquet else pa.ipc.new_file(str(path), schema) as writer:
        for some in batches(number):
            columns = [pa.array(column, kind) for column, kind in zip(zip(*some, strict=True), kinds, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def write_xlsx(path: Path, number: int) -> None:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Cases")
    sheet.append(NAMES)
    for row in rows(number):
        sheet.append(as_texts(row))
    book.save(path)


WRITERS = {"csv": write_csv, "parquet": write_arrow, "feather": write_arrow, "xlsx": write_xlsx}


def measured(folder: Path) -> tuple[float, float, float]:
    """Seconds, seconds of the processor and megabytes of one validation."""
    began = time.perf_counter()
    with subprocess.Popen(
        [AGENTV, "validate", "suite.eval.yaml"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        output = process.stdout.read() if process.stdout is not None else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(output[:1000])
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    print(f"{given.rows:,} rows\n{'format':<10}{'MB':>8}{'seconds':>10}{'CPU s':>10}{'peak MB':>10}")
    for name in given.formats:
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            (folder / ".git").mkdir()
            path = folder / f"cases.{name}"
            WRITERS[name](path, given.rows)
            (folder / "suite.eval.yaml").write_text(SUITE.replace("SUFFIX", name), encoding="utf-8")
            seconds, busy, peak = min(measured(folder) for _ in range(given.rounds))
            print(f"{name:<10}{path.stat().st_size / 1e6:>8.1f}{seconds:>10.2f}{busy:>10.2f}{peak:>10.0f}", flush=True)


if __name__ == "__main__":
    main()
