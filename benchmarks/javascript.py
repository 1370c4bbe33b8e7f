"""Time of one grading by a TypeScript assertion, warm: `python benchmarks/javascript.py [GRADINGS]`."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from agentv.model.run.context import AssertionContext
from agentv.model.values.message import Message
from agentv.user_code.javascript.host import JavaScriptHost
from agentv.user_code.javascript.runtime import find_runtime

MIN_WORDS = """\
import { defineAssertion } from '@agentv/sdk';

export default defineAssertion(({ output }) => {
  const wordCount = (output ?? '').trim().split(/\\s+/).filter(Boolean).length;
  return { pass: wordCount >= 3, assertions: [{ text: `Output has ${wordCount} words`, passed: wordCount >= 3 }] };
});
"""
AT_ONCE = 50


async def measure(env: dict[str, str], file: str, gradings: int) -> None:
    runtime = find_runtime(env["PATH"])
    name = runtime if isinstance(runtime, str) else runtime[0]
    context = AssertionContext((Message("user", "Say hello"),), "Hello there, nice to meet you!", criteria="greets")
    host = JavaScriptHost(env)

    async def grade(count: int) -> None:
        for _ in range(count):
            result = await host.grade(file, {**context.payload, "config": {"minimum": 3}})
            assert isinstance(result, dict), result

    try:
        began = time.perf_counter()
        await grade(1)
        first = time.perf_counter() - began
        await grade(gradings // 10)
        alone = [await timed(grade(gradings // 50)) / (gradings // 50) for _ in range(5)]
        together = []
        for _ in range(5):
            took = await timed(asyncio.gather(*(grade(gradings // AT_ONCE) for _ in range(AT_ONCE))))
            together.append(took / (gradings // AT_ONCE * AT_ONCE))
    finally:
        await host.close()
    print(name)
    print(f"  first        {first * 1e3:8.1f} ms")
    print(f"  one by one   {statistics.median(alone) * 1e3:8.3f} ms a grading")
    each = statistics.median(together)
    print(f"  {AT_ONCE} at once   {each * 1e3:8.3f} ms a grading, {1 / each:,.0f} a second")


async def timed(work: object) -> float:
    began = time.perf_counter()
    await work  # type: ignore[misc]
    return time.perf_counter() - began


def main() -> None:
    gradings = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "min-words.ts"
        file.write_text(MIN_WORDS)
        nowhere = {**os.environ, "PATH": directory}
        asyncio.run(measure(nowhere, str(file), gradings))
        if shutil.which("bun"):
            asyncio.run(measure(dict(os.environ), str(file), gradings))


if __name__ == "__main__":
    main()
