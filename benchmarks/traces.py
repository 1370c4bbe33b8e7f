#!/usr/bin/env python3
"""A native stream of 10 MB: time and memory to read it, to write trace.json and to read that back.

    python benchmarks/traces.py [MEGABYTES]

Each format in a process of its own, since memory is measured at its peak.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TEXT = "the quick brown fox jumps over the lazy dog; " * 4


def acp(size: int) -> bytes:
    rows: list[bytes] = []
    length = number = 0
    while length < size:
        number += 1
        for told in (
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": TEXT}},
            {"sessionUpdate": "tool_call", "toolCallId": f"c{number}", "title": "Bash", "rawInput": {"command": TEXT}},
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": f"c{number}",
                "status": "completed",
                "rawOutput": TEXT * 4,
            },
        ):
            row = json.dumps(
                {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": told}}
            )
            rows.append(row.encode() + b"\n")
            length += len(rows[-1])
    return b"".join(rows)


def other(form: str, size: int) -> bytes:
    from agentv.extensions.agents.traces.acp import read_acp
    from agentv.extensions.agents.traces.atif import atif_of
    from agentv.extensions.agents.traces.otlp_export import TraceOrigin, otlp_of, protobuf_of

    trace = read_acp(acp(size))
    if form == "atif":
        return json.dumps(atif_of(trace)).encode()
    document = otlp_of([(trace, TraceOrigin("k"))])
    return json.dumps(document).encode() if form == "otlp" else protobuf_of(document)


def peak() -> float:
    """Megabytes at most until now; unlike `ru_maxrss`, without those of the process that started this one."""
    told = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(told["VmHWM"].split()[0]) / 1024


def measure(form: str, path: str) -> None:
    from agentv.extensions.agents.traces.acp import read_acp
    from agentv.extensions.agents.traces.atif import read_atif
    from agentv.extensions.agents.traces.otlp import read_otlp
    from agentv.store.files.traces import read, write

    data = Path(path).read_bytes()
    before = peak()
    began = time.perf_counter()
    found = {"acp": read_acp, "atif": read_atif}.get(form, read_otlp)(data)
    trace = found[0] if isinstance(found, list) else found
    parsed = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as directory:
        began = time.perf_counter()
        files = write(trace, directory)
        written = time.perf_counter() - began
        began = time.perf_counter()
        read(files.trace_path)
        again = time.perf_counter() - began
    print(
        f"{form:5} {len(data) / 1e6:5.1f} MB {len(trace.steps):6} steps: read {parsed:.2f} s, "
        f"write {written:.2f} s, read back {again:.2f} s; {peak() - before:.0f} MB above {before:.0f} MB"
    )


def main() -> None:
    if len(sys.argv) == 3:
        measure(sys.argv[1], sys.argv[2])
        return
    size = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as directory:
        for form in ("acp", "atif", "otlp", "pb"):
            path = Path(directory, form)
            path.write_bytes(acp(size) if form == "acp" else other(form, size))
            subprocess.run([sys.executable, __file__, form, str(path)], check=True)


if __name__ == "__main__":
    main()
