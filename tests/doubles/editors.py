"""An editor: a client of the language server, which is started as editors start it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.uris import from_fs_path

PATIENCE_S = 60


@contextmanager
def started_editor(command: str, root: Path) -> Iterator[Editor]:
    """Yield an editor connected to a running server; the server must exit by itself afterwards."""
    editor = Editor(root)
    editor.start(command)
    yield editor
    editor.end()


class Editor:
    """Synchronous calls of a language client; columns are counted in UTF-16 units from 0."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.status: int | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._client = LanguageClient("test", "1")
        self._published: dict[str, types.PublishDiagnosticsParams] = {}
        self._changed = asyncio.Event()
        self._versions: dict[str, int] = {}

        @self._client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self._published[params.uri] = params
            self._changed.set()

    def start(self, command: str) -> None:
        self._thread.start()
        self._run(self._client.start_io(command, "lsp", "--stdio", cwd=str(self.root)))
        edits = types.WorkspaceEditClientCapabilities(
            document_changes=True, resource_operations=[types.ResourceOperationKind.Rename]
        )
        able = types.ClientCapabilities(workspace=types.WorkspaceClientCapabilities(workspace_edit=edits))
        asked = types.InitializeParams(able, root_uri=self.uri(self.root))
        self.capabilities = self._run(self._client.initialize_async(asked)).capabilities
        self._call(self._client.initialized, types.InitializedParams())

    def end(self) -> None:
        self._run(self._client.shutdown_async(None))
        self._call(self._client.exit, None)
        self.status = self._run(self._client._server.wait())
        self._run(self._client.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def uri(self, path: Path) -> str:
        return from_fs_path(str(path))

    def open(self, name: str, text: str, *, saved: bool = True) -> list[types.Diagnostic]:
        """Open a file and return its diagnostics."""
        path = self.root / name
        if saved:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        uri = self.uri(path)
        self._versions[uri] = 1
        opened = types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "yaml", 1, text))
        self._call(self._client.text_document_did_open, opened)
        return self.diagnostics(name)

    def type(self, name: str, text: str) -> list[types.Diagnostic]:
        """Replace the text of an open file without saving it, and return its diagnostics."""
        uri = self.uri(self.root / name)
        self._versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        changed = types.DidChangeTextDocumentParams(document, [types.TextDocumentContentChangeWholeDocument(text)])
        self._call(self._client.text_document_did_change, changed)
        return self.diagnostics(name)

    def diagnostics(self, name: str) -> list[types.Diagnostic]:
        uri = self.uri(self.root / name)
        return self.wait(name, lambda found: found.version == self._versions[uri])

    def wait(self, name: str, enough: Any) -> list[types.Diagnostic]:
        """Return the diagnostics of a file once `enough` accepts them."""
        return self._run(self._until(self.uri(self.root / name), enough))

    async def _until(self, uri: str, enough: Any) -> list[types.Diagnostic]:
        while uri not in self._published or not enough(self._published[uri]):
            self._changed.clear()
            await self._changed.wait()
        return list(self._published[uri].diagnostics)

    def close(self, name: str) -> None:
        document = types.TextDocumentIdentifier(self.uri(self.root / name))
        self._call(self._client.text_document_did_close, types.DidCloseTextDocumentParams(document))

    def complete(self, name: str, text: str) -> list[str]:
        """Return the completion labels at the `|` of a text."""
        return [item.label for item in self.items(name, text)]

    def items(self, name: str, text: str) -> list[types.CompletionItem]:
        before, after = text.split("|", 1)
        self.type(name, before + after)
        lines = before.split("\n")
        position = types.Position(len(lines) - 1, len(lines[-1].encode("utf-16-le")) // 2)
        found = self.ask("text_document_completion", types.CompletionParams, name, position)
        return sorted(found.items, key=lambda item: item.sort_text)

    def ask(self, method: str, params: Any, name: str, position: tuple[int, int] | types.Position, **more: Any) -> Any:
        """Return the response to a request about a position."""
        at = position if isinstance(position, types.Position) else types.Position(*position)
        document = types.TextDocumentIdentifier(self.uri(self.root / name))
        return self._run(getattr(self._client, f"{method}_async")(params(text_document=document, position=at, **more)))

    def send(self, method: str, params: Any) -> Any:
        """Return the response to any other request."""
        return self._run(getattr(self._client, f"{method}_async")(params))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def _call(self, work: Any, *given: Any) -> None:
        async def call() -> None:
            work(*given)

        self._run(call())
