"""Readers made from declarations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest

from agentv.authoring.fields.decode import INVALID, kind_for, shape_of
from agentv.authoring.fields.reading import ExtraKeys
from agentv.model.suite.assertion import Transform
from agentv.model.values.values import Json
from agentv.registry.fields import (
    Alias,
    Between,
    CallTimeTemplate,
    Command,
    Count,
    Declared,
    DirectoryPath,
    Document,
    Entries,
    FilePath,
    Fraction,
    FunctionRef,
    Issue,
    LoadedJson,
    PythonSource,
    Text,
    Texts,
    Verbatim,
)
from doubles.loading import parsed, reading_of, repository

FILES = {
    "note.md": "{{ not rendered }}\n",
    "data.json": '{"a": [1, 2]}',
    "data.yaml": "a: [1, 2]\n",
    "comments.yaml": "# nothing\n",
    "broken.json": "{",
    "deep.json": "[" * 100_000,
    "my notes/a b.md": "spaced\n",
    "tools.py": "def f(): pass\n",
    "folder/inside.txt": "x",
}


@dataclass(frozen=True, slots=True)
class Inner(Declared):
    """A nested mapping."""

    text: Text
    count: Count = 1


@dataclass(frozen=True, slots=True)
class Options(Declared):
    """Options of many kinds."""

    short: ClassVar[str | None] = "text"

    text: Annotated[Text | None, Alias(("words", "phrase"))] = None
    strict: str | None = None
    flag: bool = False
    number: float | None = None
    between: Annotated[int, Between(2, 4)] = 2
    most: Annotated[float, Between(None, 9)] = 0
    mode: Literal["fast", "slow"] = "fast"
    either: bool | Fraction = False
    texts: Texts | None = None
    inner: Inner | None = None
    inners: tuple[Inner | Text, ...] = ()
    table: Mapping[str, Count] = field(default_factory=dict)
    anything: Json = None
    assert_: Entries = ()

    def validate(self) -> Iterable[Issue]:
        """Reject some combinations."""
        if self.text == "bad":
            yield Issue(("text",), "it is bad", "bad-thing", "be good")
        if self.inners and self.mode == "slow":
            yield Issue(("inners", len(self.inners) - 1), "too slow for it", warning=True)
        if self.table == {"x": 0}:
            yield Issue(("table", "x"), "nothing of x")


def read(text: str, folder: Path, **more):
    """Return the options in a text, and its diagnostics: code, column, message."""
    reading = reading_of(repository(folder, FILES), **more)
    node = parsed(text, str(folder / "suite.eval.yaml"))
    made = shape_of(Options).decode(node.items, node, reading, "the thing", extra=ExtraKeys(hinted=("elsewhere",)))
    return made, [(one.code, one.span.column, one.message) for one in reading.report.diagnostics]


def test_every_kind_is_read(tmp_path):
    text = """
    text: 1.50
    strict: words
    flag: true
    number: 3
    between: 4
    mode: slow
    either: 0.5
    texts: [a, 2, true]
    inner: {text: x, count: 3}
    inners: [{text: x}, y]
    table: {a: 1}
    anything: {b: [null, 1]}
    assert: [{contains: x}]
    x-free: whatever
    """
    made, told = read(text, tmp_path)
    assert [code for code, _, message in told if "too slow" not in message] == []
    assert (made.text, made.strict, made.flag, made.number, made.between) == ("1.50", "words", True, 3.0, 4)
    assert (made.mode, made.either, made.texts) == ("slow", 0.5, ("a", "2", "true"))
    assert (made.inner, made.inners) == (Inner("x", 3), (Inner("x"), "y"))
    assert (made.table, made.anything) == ({"a": 1}, {"b": [None, 1]})
    assert [entry.type for entry in made.assert_] == ["contains"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strict: 5", "'strict' must be text, found the number 5"),
        ("flag: on", "'flag' must be true or false, found 'on'"),
        (f"number: {'9' * 350}", f"'number' must be a number, found the number {'9' * 350}"),
        ("number: true", "'number' must be a number, found the boolean true"),
        ("between: 5", "'between' must be a whole number from 2 to 4, found the number 5"),
        ("between: two", "'between' must be a whole number from 2 to 4, found 'two'"),
        ("mode: fst", "'mode' must be one of fast, slow, found 'fst'"),
        ("either: x", "'either' must be true or false or a number from 0 to 1, found 'x'"),
        ("texts: []", "'texts' is empty; it needs texts"),
        ("texts: [a, [b]]", "'texts[1]' must be text, found a list"),
        ("inner: {count: 1}", "'inner' needs 'text'"),
        ("inner: {txt: x}", "'inner' has no key 'txt'"),
        ("inners: [1, [x]]", "'inners[1]' must be a mapping or text, found a list"),
        ("inners: {a: b}", "'inners' must be a list of mappings or texts, found a mapping"),
        ("table: {a: -1}", "'table.a' must be a whole number of 0 or more, found the number -1"),
        ("assert: x", "'assert' must be a list of assertions, found 'x'"),
        ("colour: blue", "the thing has no key 'colour'"),
    ],
)
def test_what_is_wrong_says_what_was_found_and_what_is_allowed(tmp_path, text, message):
    made, told = read(text, tmp_path)
    assert made is INVALID
    assert [one for _, _, one in told] == [message]


HINTS = {
    "txet: a": "did you mean 'text'?",
    "elsewere: a": "did you mean 'elsewhere'?",
    "mode: fst": "did you mean 'fast'?",
    "flag: yes": "in YAML 1.2, 'yes' is text: write true",
    "strict: 5": 'for text, write "5"',
    "number: '0.5'": "in quotes it is text: write 0.5",
    "texts: a": "write ['a']",
    "text: bad": "be good",
}


def test_the_likely_fix(tmp_path):
    for text, hint in HINTS.items():
        reading = reading_of(tmp_path)
        node = parsed(text)
        shape_of(Options).decode(node.items, node, reading, "the thing", extra=ExtraKeys(hinted=("elsewhere",)))
        assert [found.hint for found in reading.report.diagnostics] == [hint], text


def test_a_number_out_of_the_environment_is_text_until_a_filter_makes_it_one(tmp_path):
    reading = reading_of(tmp_path, env={"N": "3"}, renders=True)
    node = parsed("{between: '{{ env.N }}', number: '{{ env.N | int }}'}")
    assert shape_of(Options).decode(node.items, node, reading, "it") is INVALID
    shown = [one.hint for one in reading.report.diagnostics]
    assert shown == ["the placeholder produced text: add '| int' inside its braces"]


@dataclass(frozen=True, slots=True)
class Templates(Declared):
    """Values that are rendered later or never."""

    late: Annotated[Mapping[str, Json], CallTimeTemplate()] = field(default_factory=dict)
    never: Annotated[Json, Verbatim()] = None
    prompt: Document | None = None
    transform: Transform | None = None


def test_what_is_rendered_later_or_never_is_left_alone(tmp_path):
    reading = reading_of(tmp_path, renders=True)
    node = parsed('{late: {a: "{{ x }}"}, never: ["{{ y }}"], prompt: "{{ output }}", transform: "{{ output }}"}')
    made = shape_of(Templates).decode(node.items, node, reading, "it")
    assert not reading.report.count
    assert (made.late, made.never, made.prompt.text) == ({"a": "{{ x }}"}, ["{{ y }}"], "{{ output }}")
    assert made.transform == Transform("jinja", "output")


def value(annotation, text: str, folder: Path):
    """Return the value of a given type in a text, and its diagnostics."""
    reading = reading_of(repository(folder, FILES))
    node = parsed(f"- {text}", str(folder / "suite.eval.yaml")).items[0]
    return kind_for(annotation).read(node, reading, "it"), [one.message for one in reading.report.diagnostics]


def test_documents_are_inline_or_by_a_path(tmp_path):
    note = str(tmp_path / "note.md")
    assert value(Document, "Judge it", tmp_path) == (Document("Judge it"), [])
    assert value(Document, "./note.md", tmp_path) == (Document("{{ not rendered }}\n", note), [])
    assert value(Document, "note.md", tmp_path)[0].path == note
    assert value(Document, "file://note.md", tmp_path)[0].path == note
    assert value(Document, "./my notes/a b.md", tmp_path)[0].text == "spaced\n"
    assert value(Document, "A sentence. With a dot.", tmp_path)[0].path is None
    assert value(Document, "' '", tmp_path)[1] == ["'it' must be text, or the path of a file, found ' '"]
    assert value(Document, "no.md", tmp_path)[1] == ["file 'no.md' does not exist"]


def test_data_is_inline_or_by_a_path(tmp_path):
    assert value(LoadedJson, "{a: 1}", tmp_path) == (LoadedJson({"a": 1}), [])
    assert value(LoadedJson, "just text", tmp_path) == (LoadedJson("just text"), [])
    assert value(LoadedJson, "data.json", tmp_path)[0].value == {"a": [1, 2]}
    assert value(LoadedJson, "data.yaml", tmp_path)[0].value == {"a": [1, 2]}
    for name in ("comments.yaml", "broken.json", "deep.json"):
        made, told = value(LoadedJson, name, tmp_path)
        assert made is INVALID
        assert len(told) == 1


def test_functions_are_of_a_file_or_of_a_module(tmp_path):
    assert value(FunctionRef, "tools.py:f", tmp_path) == (FunctionRef("f", path=str(tmp_path / "tools.py")), [])
    assert value(FunctionRef, "file://tools.py:f", tmp_path)[0].path == str(tmp_path / "tools.py")
    shown = value(FunctionRef, "package.module:Class.method", tmp_path)[0]
    assert shown == FunctionRef("Class.method", module="package.module")
    assert value(FunctionRef, "tools.py", tmp_path)[0] is INVALID
    assert value(FunctionRef, "no.py:f", tmp_path)[1] == ["file 'no.py' does not exist"]


def test_python_is_code_or_a_function(tmp_path):
    assert value(PythonSource, "len(output) > 3", tmp_path)[0] == PythonSource(code="len(output) > 3")
    assert value(PythonSource, "tools.py:f", tmp_path)[0].function.name == "f"
    assert value(PythonSource, "file://tools.py:f", tmp_path)[0].function.name == "f"
    assert value(PythonSource, "file://tools.py", tmp_path)[0] is INVALID
    assert value(PythonSource, "''", tmp_path)[0] is INVALID


def test_commands_are_words_or_a_line(tmp_path):
    assert value(Command, "[python, -m, x, 1]", tmp_path)[0] == Command(("python", "-m", "x", "1"), cwd=str(tmp_path))
    assert value(Command, "cat | wc", tmp_path)[0] == Command(shell="cat | wc", cwd=str(tmp_path))
    for wrong in ("[]", "''", "['']", "[a, [b]]", "[a, ~]", "{a: b}", "5"):
        assert value(Command, wrong, tmp_path)[0] is INVALID


def test_transforms_are_checked_when_they_are_read(tmp_path):
    assert value(Transform, "output | upper", tmp_path)[0] == Transform("jinja", "output | upper")
    assert value(Transform, "$.a.b[0]", tmp_path)[0] == Transform("path", "$.a.b[0]")
    assert value(Transform, "tools.py:f", tmp_path)[0] == Transform("function", "f", str(tmp_path / "tools.py"))
    assert value(Transform, "'javascript: output.a'", tmp_path)[0] == Transform("javascript", "output.a")
    (tmp_path / "shape.mjs").write_text("")
    file = str(tmp_path / "shape.mjs")
    for written, name in (("shape.mjs", ""), ("file://shape.mjs:pick", "pick"), ("'javascript: ./shape.mjs'", "")):
        assert value(Transform, written, tmp_path)[0] == Transform("javascript-file", name, file)
    for wrong in ("output |", "$.a[", "'{{ a }}-{{ b }}'", "5", "no.py:f", "no.js", "'javascript:'"):
        assert value(Transform, wrong, tmp_path)[0] is INVALID


def test_paths_are_of_files_or_of_directories(tmp_path):
    assert value(FilePath, "note.md", tmp_path)[0] == str(tmp_path / "note.md")
    assert value(DirectoryPath, "folder", tmp_path)[0] == str(tmp_path / "folder")
    assert value(FilePath, "folder", tmp_path)[1] == ["'it' must be the path of a file, found 'folder'"]
    assert value(DirectoryPath, "note.md", tmp_path)[0] is INVALID
    assert value(FilePath, "''", tmp_path)[0] is INVALID
