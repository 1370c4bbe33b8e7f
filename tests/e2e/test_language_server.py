"""`agentv lsp` as an editor uses it, with one server for all tests."""

from collections.abc import Iterator

import pytest
from lsprotocol import types

from doubles.editors import Editor, started_editor
from e2e.command import AGENTV

HEAD = "target: echo\ntests:\n- id: a\n  input: hi\n  assert:\n"
GOOD = f"{HEAD}  - contains: hi\n"


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    root = tmp_path_factory.mktemp("projekt mit ä 🎉")
    (root / ".git").mkdir()
    mark = root / "imported"
    for name in ("random", "selectors", "socket", "tempfile", "multiprocessing", "sitecustomize"):
        (root / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').close()\n")
    with started_editor(AGENTV, root) as started:
        yield started
    assert started.status == 0
    assert not mark.exists(), "a module of the project was imported"


def codes(found: list[types.Diagnostic]) -> list[str]:
    return [str(one.code) for one in found]


def test_mistakes_are_shown_while_someone_types(editor: Editor) -> None:
    assert editor.open("typed.eval.yaml", GOOD) == []
    (found,) = editor.type("typed.eval.yaml", GOOD.replace("contains", "contians"))
    assert (found.code, found.severity, found.source) == ("unknown-assertion", types.DiagnosticSeverity.Error, "agentv")
    assert (found.range.start, found.range.end) == (types.Position(5, 4), types.Position(5, 12))
    assert "did you mean 'contains'?" in found.message
    assert found.code_description.href.endswith("/explanations/unknown-assertion.md")
    assert editor.type("typed.eval.yaml", GOOD) == []
    assert (editor.root / "typed.eval.yaml").read_text() == GOOD


def test_columns_are_those_of_the_editor(editor: Editor) -> None:
    text = f"{HEAD}  - {{icontains: 🎉🎉, weigth: 2}}\n"
    (found,) = editor.open("ünï códe.eval.yaml", text)
    line = text.split("\n")[5]
    start = len(line[: line.index("weigth")].encode("utf-16-le")) // 2
    assert (found.range.start.character, found.range.end.character) == (start, start + 6)


def test_completion_goes_by_the_place(editor: Editor) -> None:
    editor.open("places.eval.yaml", GOOD)
    at = lambda text: editor.complete("places.eval.yaml", text)  # noqa: E731  # short, for a table
    assert at(f"{HEAD}  - |")[:2] == ["contains", "contains-any"]
    assert not {"weight", "llm-judge"} & set(at(f"{HEAD}  - |"))
    assert at(f"{HEAD}  - type: |")[0] == "contains"
    assert at(f"{HEAD}  - type: regex\n    |")[:2] == ["value", "flags"]
    assert at(f"{HEAD}  - {{type: levenshtein, |")[:2] == ["value", "threshold"]
    assert set(at(f"{HEAD}  - contains: hi\n    |")) >= {"weight", "negate"}
    assert "repeat" in at("run:\n  |\n")
    assert "assert" in at("tests:\n- id: a\n  |\n")
    assert "base_url" in at("target:\n  provider: openai\n  |\n")
    assert "anthropic" in at("target:\n  provider: |\n")
    assert at("tests:\n- id: a\n  input: >\n    say |\n") == []
    assert at("# what |\n") == []


def test_names_and_files_of_the_project_are_completed(editor: Editor) -> None:
    editor.open("named/.agentv/targets.yaml", "targets:\n- {name: my-agent, provider: echo}\n")
    editor.open("named/.agentv/templates/safe.yaml", "assert:\n- contains: hi\n")
    (editor.root / "named" / "prompts").mkdir()
    types_ = editor.root / "named" / ".agentv" / "assertions"
    types_.mkdir()
    (types_ / "is_polite.py").write_text("raise SystemExit('run')\n")
    editor.open("named/a.eval.yaml", GOOD)
    at = lambda text: editor.complete("named/a.eval.yaml", text)  # noqa: E731
    assert at("target: |\n") == ["my-agent"]
    assert at(f"{HEAD}  - include: |") == ["safe"]
    assert "is-polite" in at(f"{HEAD}  - |")
    assert at("prompts: ./|\n") == ["a.eval.yaml", "prompts/"]
    editor.type("named/a.eval.yaml", f"{GOOD}- id: b\n  input: hi\n  assert: [contains: hi]\n")
    assert at(f"{GOOD}- id: b\n  input: hi\n  assert: [contains: hi]\n  depends_on: |\n") == ["a"]
    for name in (".agentv/targets.yaml", ".agentv/templates/safe.yaml", "a.eval.yaml"):
        editor.close(f"named/{name}")


def test_hover_describes_keys_types_and_mistakes(editor: Editor) -> None:
    editor.open("hovered.eval.yaml", f"threshold: 1\n{HEAD}  - type: not-contains\n    value: x\n  - contians: y\n")
    shown = {
        place: editor.ask("text_document_hover", types.HoverParams, "hovered.eval.yaml", place)
        for place in ((0, 2), (6, 14), (7, 5), (8, 5), (4, 9))
    }
    assert "minimum score" in shown[0, 2].contents.value
    assert "contains a text" in shown[6, 14].contents.value
    assert "Passes where `contains` fails" in shown[6, 14].contents.value
    assert "the text to find" in shown[7, 5].contents.value
    assert "agentv explain unknown-assertion" in shown[8, 5].contents.value
    assert shown[4, 9] is None


def test_a_broken_file_keeps_its_outline_and_completions(editor: Editor) -> None:
    editor.open("broken.eval.yaml", GOOD)
    assert codes(editor.type("broken.eval.yaml", f"{GOOD}  x: [\n")) == ["bad-yaml"]
    document = types.TextDocumentIdentifier(editor.uri(editor.root / "broken.eval.yaml"))
    (symbol,) = editor.send("text_document_document_symbol", types.DocumentSymbolParams(document))
    assert (symbol.name, symbol.range.start.line, symbol.range.end.line) == ("a", 2, 5)
    assert "weight" in editor.complete("broken.eval.yaml", f"{GOOD}    |\n  x: [\n")


def test_a_quick_fix_writes_what_the_hint_says(editor: Editor) -> None:
    text = GOOD.replace("contains", "contians")
    (found,) = editor.open("fixed.eval.yaml", text)
    document = types.TextDocumentIdentifier(editor.uri(editor.root / "fixed.eval.yaml"))
    asked = types.CodeActionParams(document, found.range, types.CodeActionContext([found]))
    (action,) = editor.send("text_document_code_action", asked)
    assert action.title == "Replace 'contians' with 'contains'"
    (edit,) = action.edit.changes[document.uri]
    lines = text.split("\n")
    line = lines[edit.range.start.line]
    lines[edit.range.start.line] = line[: edit.range.start.character] + edit.new_text + line[edit.range.end.character :]
    assert editor.type("fixed.eval.yaml", "\n".join(lines)) == []


def located(editor: Editor, name: str, place: tuple[int, int]) -> list[tuple[str, int]]:
    found = editor.ask("text_document_definition", types.DefinitionParams, name, place)
    return [(one.uri.rpartition("/")[2], one.range.start.line) for one in found]


def test_definitions_are_found(editor: Editor) -> None:
    (editor.root / "go" / ".agentv" / "templates").mkdir(parents=True)
    (editor.root / "go" / ".agentv" / "assertions").mkdir()
    (editor.root / "go" / ".agentv" / "targets.yaml").write_text("targets:\n- name: bot\n  provider: echo\n")
    (editor.root / "go" / ".agentv" / "templates" / "safe.yaml").write_text("assert: [{contains: hi}]\n")
    (editor.root / "go" / ".agentv" / "assertions" / "polite.py").write_text("raise SystemExit('run')\n")
    (editor.root / "go" / "ask.md").write_text("hi\n")
    text = (
        "target: bot\nprompts: [file://ask.md]\ntests:\n- id: a\n  assert:\n  - include: safe\n  - polite:\n"
        "- id: b\n  depends_on: a\n  assert: [contains: hi]\n"
    )
    editor.open("go/a.eval.yaml", text)
    assert located(editor, "go/a.eval.yaml", (0, 10)) == [("targets.yaml", 1)]
    assert located(editor, "go/a.eval.yaml", (1, 20)) == [("ask.md", 0)]
    assert located(editor, "go/a.eval.yaml", (5, 14)) == [("safe.yaml", 0)]
    assert located(editor, "go/a.eval.yaml", (6, 6)) == [("polite.py", 0)]
    assert located(editor, "go/a.eval.yaml", (8, 15)) == [("a.eval.yaml", 3)]
    assert located(editor, "go/a.eval.yaml", (3, 0)) == []


def test_a_template_that_changes_is_seen_by_who_includes_it(editor: Editor) -> None:
    editor.open("live/.agentv/templates/safe.yaml", "assert:\n- contains: hi\n")
    assert editor.open("live/a.eval.yaml", f"{HEAD}  - include: safe\n") == []
    assert codes(editor.type("live/.agentv/templates/safe.yaml", "assert:\n- contians: hi\n")) == ["unknown-assertion"]
    assert editor.open("live/b.eval.yaml", f"{HEAD}  - include: saef\n")[0].code == "missing-template"


def test_a_file_that_is_nowhere_on_disk_is_checked(editor: Editor) -> None:
    assert editor.open("new folder/unsaved.eval.yaml", GOOD, saved=False) == []
    editor.open("gone.eval.yaml", GOOD)
    (editor.root / "gone.eval.yaml").unlink()
    assert codes(editor.type("gone.eval.yaml", GOOD.replace("hi\n  assert", "hi\n  asert"))) != []
    editor.close("gone.eval.yaml")
    assert editor.wait("gone.eval.yaml", lambda found: not found.diagnostics) == []


def test_no_code_of_a_project_runs_and_nothing_is_fetched(editor: Editor) -> None:
    folder = editor.root / "hostile"
    mark = folder / "ran"
    (folder / ".agentv" / "assertions").mkdir(parents=True)
    code = f"open({str(mark)!r}, 'w').close()\n"
    for name in ("cases.py", ".agentv/assertions/evil.py", "sitecustomize.py", "conftest.py", "targets.py"):
        (folder / name).write_text(f"{code}def cases():\n    {code}    return []\n")
    text = (
        "target: {provider: python, function: 'targets.py:cases'}\nprompts: cases.py:cases\n"
        "input_files: https://github.com/example/example/blob/main/a.md\n"
        "tests: cases.py:cases\nassert:\n- evil:\n- python: 1/0\n"
    )
    found = editor.open("hostile/a.eval.yaml", text)
    assert not {"git-failed", "missing-repository"} & set(codes(found))
    editor.complete("hostile/a.eval.yaml", f"{text}- |\n")
    assert not mark.exists()


def test_a_bomb_does_not_stop_the_server(editor: Editor) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)
    )
    assert codes(editor.open("bomb.eval.yaml", bomb)) != []
    assert editor.open("after.eval.yaml", GOOD) == []


def test_a_long_file_is_checked_after_each_change(editor: Editor) -> None:
    cases = "".join(f"- id: c{n}\n  input: hi\n  assert:\n  - contains: hi\n" for n in range(700))
    text = f"target: echo\ntests:\n{cases}".replace("- id: c3\n  input", "- id: c3\n  inptu")
    assert codes(editor.open("long.eval.yaml", text)) == ["unknown-key"]
    before, after = text[:20_000], text[20_000:].replace("contains", "contians", 1)
    found = editor.type("long.eval.yaml", before + after)
    assert codes(found) == ["unknown-key", "unknown-assertion"]
    again = editor.type("long.eval.yaml", (before + after).replace("- id: c3\n", "- id: c3\n  description: x\n"))
    assert sorted(codes(again)) == ["unknown-assertion", "unknown-key"]
    moved = next(one for one in again if one.code == "unknown-assertion")
    assert moved.range.start.line == next(one for one in found if one.code == "unknown-assertion").range.start.line + 1
