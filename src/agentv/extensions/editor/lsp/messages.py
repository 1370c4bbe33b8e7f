"""Mistakes and cases in the words of the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types
from pygls.workspace import PositionCodec

from agentv.app.authored.explain import FOLDER
from agentv.codes import CODES
from agentv.errors import Diagnostic
from agentv.extensions.editor.index import FileIndex
from agentv.extensions.editor.lsp.positions import range_of, uri_of
from agentv.model.values.span import Span

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "hint": types.DiagnosticSeverity.Information,
}
_BEGINNING = Span("", 1, 1, 1, 2)


def as_lsp(found: Diagnostic, lines: Sequence[str], codec: PositionCodec) -> types.Diagnostic:
    """A mistake; its code links to the page that `agentv explain` prints."""
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
    """The cases of a file."""
    found = []
    for case in index.cases:
        name = range_of(case.name, lines, codec)
        start = types.Position(case.first_line - 1, 0)
        end_line = min(max(case.last_line, case.name.line), len(lines)) - 1
        end = types.Position(end_line, codec.client_num_units(lines[end_line]))
        whole = types.Range(min(start, name.start), max(end, name.end))
        found.append(types.DocumentSymbol(case.id, types.SymbolKind.Method, whole, name))
    return found
