"""Time from a key to its diagnostics, and of a completion, in `agentv lsp` on long files.

    python benchmarks/editor_latency.py [CASES ...]

Types a mistake into the middle case of a file and takes it back, as an editor sends it. Prints medians and maxima.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.uris import from_fs_path

KEYS = 20
CASE = "  - id: case-{0}\n    input: Say hello {0}\n    assert:\n      - contains: hello\n      - icontains: '{0}'\n"
RIGHT, WRONG = "      - contains: hello", "      - contians: hello"


async def measure(client: LanguageClient, published: dict, path: Path, cases: int) -> None:
    """Type into one file."""
    text = "target: echo\ntests:\n" + "".join(CASE.format(number) for number in range(cases))
    uri, line = from_fs_path(str(path)), 2 + 5 * (cases // 2) + 3

    async def shown(version: int) -> list:
        while published.get(uri, (None,))[0] != version:  # noqa: ASYNC110  # as often as a person could notice
            await asyncio.sleep(0.001)
        return published[uri][1]

    begin = time.perf_counter()
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "yaml", 1, text)))
    assert not await shown(1)
    opened = time.perf_counter() - begin
    keys, completions = [], []
    for version in range(2, 2 + KEYS):
        new, old = (WRONG, RIGHT) if version % 2 == 0 else (RIGHT, WRONG)
        place = types.Range(types.Position(line, 0), types.Position(line, len(old)))
        change = types.TextDocumentContentChangePartial(place, new)
        begin = time.perf_counter()
        document = types.VersionedTextDocumentIdentifier(version, uri)
        client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        assert bool(await shown(version)) == (new == WRONG)
        keys.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        position = types.Position(line, 9)
        await client.text_document_completion_async(types.CompletionParams(types.TextDocumentIdentifier(uri), position))
        completions.append(time.perf_counter() - begin)
    print(f"{cases:6} cases: opened in {opened:.2f} s")
    print(f"       key to diagnostics {_shown(keys)}; completion {_shown(completions)}")


def _shown(seconds: list[float]) -> str:
    return f"{median(seconds) * 1000:.0f} ms (max {max(seconds) * 1000:.0f})"


async def main(sizes: list[int]) -> None:
    """One server for all files."""
    client, published = LanguageClient("benchmark", "1"), {}

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def _(params: types.PublishDiagnosticsParams) -> None:
        published[params.uri] = (params.version, params.diagnostics)

    with tempfile.TemporaryDirectory() as folder:
        await client.start_io("agentv", "lsp", cwd=folder)
        await client.initialize_async(types.InitializeParams(types.ClientCapabilities(), root_uri=from_fs_path(folder)))
        client.initialized(types.InitializedParams())
        for cases in sizes:
            await measure(client, published, Path(folder, f"of-{cases}.eval.yaml"), cases)
        await client.shutdown_async(None)
        client.exit(None)


if __name__ == "__main__":
    asyncio.run(main([int(one) for one in sys.argv[1:]] or [1000, 10000]))
