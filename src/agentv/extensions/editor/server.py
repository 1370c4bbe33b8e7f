"""The language server: handles the editor's requests and converts positions to and from the editor's units."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import PositionCodec

from agentv.app.authored.reference import FOLDER
from agentv.codes import CODES
from agentv.errors import Diagnostic, ExitStatus
from agentv.extensions.editor.answers import complete, explanations, hover, quick_fix
from agentv.extensions.editor.cursor import ITEM, cursor_at
from agentv.extensions.editor.documents import Documents, OpenFile
from agentv.extensions.editor.index import FileIndex, bytes_of, index_file, leave_deleted_directory
from agentv.extensions.editor.project import Project
from agentv.model.values.values import Span
from agentv.version import __version__

_LINE_END = re.compile(r"\r\n|\r|\n")


def lines_of(text: str) -> list[str]:
    """The lines of a text without line ends, split as the Language Server Protocol does."""
    return _LINE_END.split(text)


def changed_text(text: str, changes: Sequence[types.TextDocumentContentChangeEvent], codec: PositionCodec) -> str:
    """A text after the editor's changes. pygls's own function also ends lines at U+2028, as Python does."""
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start = _offset(text, change.range.start, codec)
            end = max(start, _offset(text, change.range.end, codec))
            text = text[:start] + change.text + text[end:]
        else:
            text = change.text
    return text


def _offset(text: str, position: types.Position, codec: PositionCodec) -> int:
    """The offset of an editor's position in a text, at most the end of the text."""
    start = 0
    for _ in range(position.line):
        found = _LINE_END.search(text, start)
        if found is None:
            return len(text)
        start = found.end()
    found = _LINE_END.search(text, start)
    return start + column_in(text[start : found.start() if found else len(text)], position.character, codec)


def lines_of_file(path: str) -> list[str]:
    """The lines of a file on disk; empty if it cannot be read."""
    try:
        return lines_of(bytes_of(path, {}).decode(errors="replace"))
    except OSError:
        return []


def uri_of(path: str) -> str:
    """The URI of an absolute path."""
    return from_fs_path(path) or Path(path).as_uri()


def column_in(line: str, units: int, codec: PositionCodec) -> int:
    """The column, in characters, of an editor's position in a line, given in code units."""
    column = 0
    for letter in line:
        if units <= 0:
            break
        units -= codec.client_num_units(letter)
        column += 1
    return column


def place_in(lines: Sequence[str], position: types.Position, codec: PositionCodec) -> tuple[int, int]:
    """The line and column of an editor's position, counted from 0, at most the end of the text."""
    if position.line >= len(lines):
        return max(len(lines) - 1, 0), len(lines[-1]) if lines else 0
    return position.line, column_in(lines[position.line], position.character, codec)


def range_of(span: Span, lines: Sequence[str], codec: PositionCodec) -> types.Range:
    """The range of a span, in the editor's units."""
    start = _position(span.line - 1, span.column - 1, lines, codec)
    end = _position(span.end_line - 1, span.end_column - 1, lines, codec)
    return types.Range(start, max(start, end))


def range_in(line: int, start: int, end: int, lines: Sequence[str], codec: PositionCodec) -> types.Range:
    """The range of two columns of a line, counted from 0 in characters, in the editor's units."""
    return types.Range(_position(line, start, lines, codec), _position(line, end, lines, codec))


def _position(line: int, column: int, lines: Sequence[str], codec: PositionCodec) -> types.Position:
    if not 0 <= line < len(lines):
        return types.Position(max(min(line, len(lines)), 0), 0)
    return types.Position(line, codec.client_num_units(lines[line][: max(column, 0)]))


_WARM_UP_S = 1.0
"""Delay before the schema is built, so that the check of the first file comes first."""

T = TypeVar("T")

_SHUTDOWN_S = 1.0
"""Time that each thread gets to end when the server ends."""

_ICONS = {
    "key": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.EnumMember,
    "name": types.CompletionItemKind.Reference,
    "file": types.CompletionItemKind.File,
}


class Server(LanguageServer):
    """A language server with the open files of its editor."""

    def __init__(self) -> None:
        super().__init__("agentv", __version__)
        self.documents = Documents(self._publish, self._warn)
        self.threads = ThreadPoolExecutor(4)

    def file_of(self, uri: str) -> OpenFile | None:
        """The open file with a URI; None if it is not open or not a file of agentv."""
        found = self.documents.get(path_of(uri))
        return found if found is not None and found.kind is not None else None

    def lines(self, path: str) -> list[str]:
        """The lines of a file: the editor's text if it is open, otherwise those on disk."""
        known = self.documents.get(path)
        return lines_of(known.text) if known is not None else lines_of_file(path)

    def range(self, span: Span) -> types.Range:
        """The range of a span in its file, in the editor's units."""
        return range_of(span, self.lines(span.file), self.workspace.position_codec)

    async def run_in_thread(self, work: Callable[..., T], *given: Any) -> T:
        """Run a function in a thread, so that the event loop is not blocked. The server's end does not wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, work, *given)

    def _warn(self, sentence: str) -> None:
        self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, sentence))

    def _publish(self, paths: set[str]) -> None:
        codec = self.workspace.position_codec
        for path in paths:
            lines, known = self.lines(path), self.documents.get(path)
            found = [as_lsp(one, lines, codec) for one in self.documents.diagnostics_of(path)]
            version = known.shown_version if known is not None else None
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri_of(path), found, version))


def path_of(uri: str) -> str:
    """The absolute path of a file's URI; "" for a text without a file."""
    return os.path.normpath(to_fs_path(uri) or "") if uri.startswith("file:") else ""


def create_server() -> Server:
    """A server with all its features, not started."""
    server = Server()
    _add_documents(server)
    _add_requests(server)
    _add_outline(server)
    return server


def serve() -> None:
    """Serve on stdin and stdout until the editor ends it. Other output to stdout goes to stderr."""
    # the working directory is the project: keep its modules from being imported, here and in the checker's process
    os.environ["PYTHONSAFEPATH"] = "1"
    leave_deleted_directory()
    here = str(Path.cwd())
    sys.path[:] = [one for one in sys.path if one not in {"", here}]
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    server = create_server()
    try:
        server.start_io(sys.stdin.buffer, answers)
    finally:
        server.documents.checker.stop()
    server.threads.shutdown(wait=False, cancel_futures=True)
    for thread in server.threads._threads:  # noqa: SLF001  # one may be blocked on a network file system
        thread.join(_SHUTDOWN_S)
        if thread.is_alive():
            os._exit(ExitStatus.PASSED)


def _add_documents(server: Server) -> None:
    documents = server.documents

    @server.feature(types.INITIALIZED)
    def initialized(_params: types.InitializedParams) -> None:
        documents.checker.start()
        loop, root = asyncio.get_running_loop(), path_of(server.workspace.root_uri or "") or str(Path.cwd())
        loop.call_later(_WARM_UP_S, loop.run_in_executor, server.threads, _warm_up, root)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        given = params.text_document
        if path := path_of(given.uri):
            documents.put(path, given.text, given.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        known = documents.get(path_of(params.text_document.uri))
        if known is not None:
            text = changed_text(known.text, params.content_changes, server.workspace.position_codec)
            documents.put(known.path, text, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        documents.close(path_of(params.text_document.uri))

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        documents.files_changed({path_of(params.text_document.uri)})

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def changed_on_disk(_params: types.DidChangeWatchedFilesParams) -> None:
        documents.check_all()


def _warm_up(directory: str) -> None:
    """Build and cache the schema before the first request needs it."""
    Project.around(str(Path(directory, "eval.yaml")), {}).schema("eval")


def _add_requests(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[" ", ":", "/", "-"]))
    async def completion(params: types.CompletionParams) -> types.CompletionList:
        file = server.file_of(params.text_document.uri)
        if file is None or file.kind is None:
            return types.CompletionList(is_incomplete=False, items=[])
        codec, lines = server.workspace.position_codec, lines_of(file.text)
        place = place_in(lines, params.position, codec)
        project = Project.around(file.path, server.documents.edits)
        known = file.checked.index if file.checked else None
        found = await server.run_in_thread(complete, lines, place, file.kind, project, known)
        word = range_in(place[0], found.start, place[1], lines, codec)
        items = [
            types.CompletionItem(
                one.label,
                kind=_ICONS[one.what],
                documentation=one.text or None,
                sort_text=f"{number:04d}",
                filter_text=one.label,
                text_edit=types.TextEdit(word, one.insert),
            )
            for number, one in enumerate(found.items)
        ]
        return types.CompletionList(is_incomplete=False, items=items)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hovered(params: types.HoverParams) -> types.Hover | None:
        file = server.file_of(params.text_document.uri)
        if file is None or file.kind is None:
            return None
        codec, lines = server.workspace.position_codec, lines_of(file.text)
        line, column = place_in(lines, params.position, codec)
        project = Project.around(file.path, server.documents.edits)
        found = await server.run_in_thread(hover, lines, (line, column), file.kind, project)
        known = server.documents.diagnostics_of(file.path)
        here = [one for one in known if one.span and _holds(one.span, line + 1, column + 1)]
        text = "\n\n".join(part for part in (found.text if found else "", explanations(here)) if part)
        where = range_in(line, found.start, found.end, lines, codec) if found else None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), where) if text else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def defined(params: types.DefinitionParams) -> list[types.Location]:
        file = server.file_of(params.text_document.uri)
        if file is None:
            return []
        lines = lines_of(file.text)
        line, column = place_in(lines, params.position, server.workspace.position_codec)
        found = await server.run_in_thread(_definitions, file, (line, column), lines, server.documents.edits)
        return [types.Location(uri_of(span.file), server.range(span)) for span in found]


def _add_outline(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        file = server.file_of(params.text_document.uri)
        index = await _fresh_index(server, file)
        if file is None or index is None:
            return []
        return await server.run_in_thread(symbols_of, index, lines_of(file.text), server.workspace.position_codec)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
    def fixes(params: types.CodeActionParams) -> list[types.CodeAction]:
        file = server.file_of(params.text_document.uri)
        if file is None:
            return []
        lines, codec = lines_of(file.text), server.workspace.position_codec
        found = []
        for one in server.documents.diagnostics_of(file.path):
            shown = as_lsp(one, lines, codec)
            at = one.span.line - 1 if one.span else len(lines)
            fix = quick_fix(one, lines[at]) if at < len(lines) else None
            if fix is not None and params.range.start <= shown.range.end and shown.range.start <= params.range.end:
                edit = types.TextEdit(range_of(fix.span, lines, codec), fix.text)
                change = types.WorkspaceEdit({params.text_document.uri: [edit]})
                kind = types.CodeActionKind.QuickFix
                found.append(types.CodeAction(fix.title, kind, [shown], is_preferred=True, edit=change))
        return found


def _definitions(file: OpenFile, place: tuple[int, int], lines: Sequence[str], edits: dict[str, bytes]) -> list[Span]:
    """The definitions of the name or path at a place."""
    line, column = place
    project = Project.around(file.path, edits)
    index = index_file(file.path, edits, file.kind) if file.kind else None
    names = index.names if index is not None else ()
    name = next((one for one in names if _holds(one.span, line + 1, column + 1)), None)
    if name is not None:
        found = list(project.definitions(name.kind, name.text, file.path))
        if found:
            return found
    links = file.checked.links if file.checked else ()
    files = [link.target for link in links if link.span.file == file.path and _holds(link.span, line + 1, column + 1)]
    files += [found for name, found in project.assertion_types().items() if _is_type(name, lines, line, column)]
    return [Span(path, 1, 1, 1, 1) for path in dict.fromkeys(files)]


def _is_type(name: str, lines: Sequence[str], line: int, column: int) -> bool:
    """Whether a place is in the name of an assertion type in a list of assertions."""
    text = lines[line].replace("_", "-") if line < len(lines) else ""
    at = text.find(name)
    cursor = cursor_at(lines, line, at) if 0 <= at <= column <= at + len(name) else None
    return cursor is not None and cursor.path[-1:] == (ITEM,) and cursor.key in {None, "type"}


def _holds(span: Span, line: int, column: int) -> bool:
    """Whether a place, counted from 1, is in a span, including its end, as a cursor may be behind the last letter."""
    return (span.line, span.column) <= (line, column) <= (span.end_line, span.end_column)


async def _fresh_index(server: Server, file: OpenFile | None) -> FileIndex | None:
    """The names of a file's current text, or the last known ones while it cannot be parsed."""
    if file is None or file.kind is None:
        return None
    if file.checked is not None and file.checked.index is not None and file.version == file.shown_version:
        return file.checked.index
    now = await server.run_in_thread(index_file, file.path, server.documents.edits, file.kind)
    return now or (file.checked.index if file.checked else None)


_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "hint": types.DiagnosticSeverity.Information,
}
_BEGINNING = Span.start_of("")


def as_lsp(found: Diagnostic, lines: Sequence[str], codec: PositionCodec) -> types.Diagnostic:
    """A diagnostic in LSP terms. Its code links to the page that `agentv explain` prints."""
    explained = found.code in CODES
    page = types.CodeDescription(uri_of(str(FOLDER / f"{found.code}.md"))) if explained else None
    parts = [found.message, found.hint, *found.notes]
    return types.Diagnostic(
        range_of(found.span or _BEGINNING, lines, codec),
        "\n".join(part for part in parts if part),
        severity=_SEVERITIES[found.severity],
        code=found.code,
        code_description=page,
        source="agentv",
        tags=[types.DiagnosticTag.Deprecated] if found.rename is not None else None,
    )


def symbols_of(index: FileIndex, lines: Sequence[str], codec: PositionCodec) -> list[types.DocumentSymbol]:
    """The outline of a file: a symbol per case."""
    found = []
    for case in index.cases:
        name = range_of(case.name, lines, codec)
        start = types.Position(case.first_line - 1, 0)
        end_line = min(max(case.last_line, case.name.line), len(lines)) - 1
        end = types.Position(end_line, codec.client_num_units(lines[end_line]))
        whole = types.Range(min(start, name.start), max(end, name.end))
        found.append(types.DocumentSymbol(case.id, types.SymbolKind.Method, whole, name))
    return found
