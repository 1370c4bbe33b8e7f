"""The agent's final workspace made worse: a hunk reverted, a test deleted, a debug line left."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from agentv.extensions.mutate.operators.mutant import MOST, Answer, Line, Mutant, quoted
from agentv.extensions.mutate.operators.patch import Hunk, lines_of
from agentv.extensions.mutate.operators.work import Work, WorkFile
from agentv.model.values.lazy_pattern import lazy_pattern

_TEST_FILE = lazy_pattern(
    r"(?:.*/)?(?:test_[^/]+\.py|[^/]+_test\.(?:py|go|rb)|[^/]+[._](?:test|spec)\.\w+|[^/]+Tests?\.(?:java|kt|cs|php))"
)
_CODE = frozenset(
    {
        *(".py", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".go", ".rb", ".sh", ".rs"),
        *(".java", ".kt", ".c", ".h", ".cc", ".cpp", ".cs", ".php", ".swift"),
    }
)
_COMMENT = lazy_pattern(r"\s*(?:#|//|/\*|\*|--|\s*$)")
_DEBUG: Mapping[str, str] = {
    ".py": 'print("DEBUG")',
    **dict.fromkeys((".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs"), 'console.log("DEBUG");'),
    ".go": 'println("DEBUG")',
    ".rb": 'puts "DEBUG"',
    ".sh": 'echo "DEBUG"',
}
_STATEMENT = lazy_pattern(r"\s*(?:return|const|let|var|if|for|while|throw)\b")


def is_test_file(path: str) -> bool:
    """Whether a path is that of a file with tests, by its name."""
    return _TEST_FILE.fullmatch(path) is not None


def revert_hunks(answer: Answer) -> Iterator[Mutant]:
    """One hunk of the agent's diff is taken back."""
    work = answer.work
    if work is None:
        return
    found = [(file, hunk) for file in work.changed for hunk in file.hunks]
    ranked = sorted(found, key=lambda one: not _counts(work, *one))
    for file, hunk in ranked[:MOST]:
        if file.text is None or file.is_new:
            text = "".join(hunk.old) if file.text is None else None
            what = f"'{file.path}', which the agent {'deleted, is back' if file.text is None else 'added, is missing'}"
        else:
            reverted = hunk.reverted(file.text)
            if reverted is None:
                continue
            text = reverted
            lines = [line.strip() for line in (*hunk.added, *hunk.removed) if line.strip()]
            shown = f", {quoted(lines[0])}" if lines else ""
            what = f"the change at line {_line(hunk)} of '{file.path}' was reverted{shown}"
        counts = _counts(work, file, hunk)
        yield Mutant(what, counts, files={file.path: text}, lines=tuple(_hunk_lines(file, hunk)))


def delete_tests(answer: Answer) -> Iterator[Mutant]:
    """A test is gone: one function of a Python file with several, else the whole file."""
    work = answer.work
    if work is None:
        return
    ranked = sorted(work.tests, key=lambda file: not _names_test(work, file))
    for file in ranked[:MOST]:
        found = _without_a_test(file)
        if found is None:
            line: Line = {"type": "file-exists", "path": file.path}
            yield Mutant(f"'{file.path}' was deleted", _names_test(work, file), files={file.path: None}, lines=(line,))
            continue
        name, text = found
        line = {"type": "file-contains", "path": file.path, "value": f"def {name}("}
        what = f"the test '{name}' of '{file.path}' was deleted"
        yield Mutant(what, _names_test(work, file), files={file.path: text}, lines=(line,))


def leave_debug_lines(answer: Answer) -> Iterator[Mutant]:
    """A line that prints debug output is left in a changed file."""
    work = answer.work
    if work is None:
        return
    for file in [one for one in work.changed if not is_test_file(one.path)][:MOST]:
        debug = _DEBUG.get(PurePosixPath(file.path).suffix)
        place = None if debug is None or file.text is None else _statement(file)
        if debug is None or file.text is None or place is None:
            continue
        lines = lines_of(file.text)
        indent = re.match(r"[ \t]*", lines[place])
        lines.insert(place, f"{indent[0] if indent else ''}{debug}\n")
        text = "".join(lines)
        if file.path.endswith(".py") and _parsed(text) is None:
            continue
        check: Line = {"type": "diff", "assert": [{"not-contains": debug}]}
        what = f"the line '{debug}' was left in '{file.path}'"
        yield Mutant(what, work.named.names_debugging, files={file.path: text}, lines=(check,))


def _counts(work: Work, file: WorkFile, hunk: Hunk) -> bool:
    """Whether a hunk is what the checks name: its words, its whole file, or code where a command grades."""
    changed = [*hunk.removed, *hunk.added]
    if (file.is_new or file.text is None) and work.named.names(file.path):
        return True
    if any(work.words.is_stated_in(line) for line in changed):
        return True
    is_code = PurePosixPath(file.path).suffix in _CODE and not is_test_file(file.path)
    return work.named.runs and is_code and not all(_COMMENT.match(line) for line in changed)


def _line(hunk: Hunk) -> int:
    """The number of the first changed line in the final file."""
    before = next((place for place, (sign, _) in enumerate(hunk.lines) if sign != " "), 0)
    return hunk.new_start + before + 1


def _hunk_lines(file: WorkFile, hunk: Hunk) -> Iterator[Line]:
    """Assertions that notice the hunk; a text with `{{` would be read as a template."""
    if file.text is None:
        yield {"type": "not-file-exists", "path": file.path}
        return
    if file.is_new:
        yield {"type": "file-exists", "path": file.path}
        return
    for kind, lines in (("file-contains", hunk.added), ("not-file-contains", hunk.removed)):
        for line in sorted({one.strip() for one in lines}, key=len, reverse=True)[:2]:
            if len(line) > 1 and not _COMMENT.match(line):
                yield {"type": kind, "path": file.path, "value": line}


def _names_test(work: Work, file: WorkFile) -> bool:
    return work.named.runs_tests or work.named.names(file.path)


def _without_a_test(file: WorkFile) -> tuple[str, str] | None:
    """The name of the last test of a Python file, and the file without it; None: it has fewer than two."""
    tree = _parsed(file.text or "") if file.path.endswith(".py") else None
    if tree is None:
        return None
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    ]
    if len(tests) < 2:
        return None
    last = max(tests, key=lambda node: node.lineno)
    start = min([last.lineno, *(one.lineno for one in last.decorator_list)]) - 1
    lines = lines_of(file.text or "")
    text = "".join((*lines[:start], *lines[last.end_lineno :]))
    return None if _parsed(text) is None else (last.name, text)


def _statement(file: WorkFile) -> int | None:
    """The place of an added line that begins a statement, before which another one may stand."""
    lines = lines_of(file.text or "")
    added = {place for hunk in file.hunks for place in _added_places(hunk)}
    if file.path.endswith(".py"):
        tree = _parsed(file.text or "")
        if tree is None:
            return None
        bodies = (getattr(node, "body", None) for node in ast.walk(tree))
        statements = (one for body in bodies if isinstance(body, list) for one in body if _may_follow(one))
        return min(
            (one.lineno - 1 for one in statements if _begins(one, lines) and one.lineno - 1 in added), default=None
        )
    if file.path.endswith((".sh", ".rb")):
        return next((place for place in sorted(added) if _is_first(lines, place)), None)
    return next(
        (
            place
            for place in sorted(added)
            if _STATEMENT.match(lines[place]) and place and lines[place - 1].rstrip().endswith(("{", ";", "}"))
        ),
        None,
    )


def _may_follow(statement: ast.AST) -> bool:
    """Whether a line may stand before a statement: not before an import, a docstring or a definition."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


def _begins(statement: ast.stmt, lines: list[str]) -> bool:
    """Whether a statement is the first thing on its line."""
    return not lines[statement.lineno - 1].encode()[: statement.col_offset].strip()


def _is_first(lines: list[str], place: int) -> bool:
    """Whether a line stands at the outermost level, after a line that does not go on."""
    if not lines[place].strip() or lines[place][:1].isspace() or lines[place].startswith("#!"):
        return False
    return not place or not lines[place - 1].rstrip().endswith(("\\", ",", "(", "[", "{", "|", "&"))


def _added_places(hunk: Hunk) -> Iterator[int]:
    place = hunk.new_start
    for sign, _ in hunk.lines:
        if sign == "+":
            yield place
        place += sign != "-"


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
