"""`input` and `expected_output` as messages (SPEC sections 4 and 5). `tests/cases` covers their forms."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.cases.messages import read_files, read_messages
from agentv.authoring.source.nodes import node_of
from agentv.model.values.message import FileBlock, ImageBlock
from agentv.model.values.values import Span
from doubles.loading import parsed, reading_of, repository

AT = Span("/nowhere/file.yaml", 1, 1, 1, 2)


def messages(text: str, folder, **more):
    reading = reading_of(folder, **more)
    found = read_messages(parsed(text, str(folder / "suite.eval.yaml")), "user", reading)
    return found, [one.code for one in reading.report.diagnostics]


def test_input_files_are_a_path_or_several(tmp_path):
    repository(tmp_path, {"a.md": "a", "b.png": b"\x89PNG\r\n\x1a\n"})
    reading = reading_of(tmp_path)
    blocks = read_files(parsed("[a.md, ./b.png]", str(tmp_path / "s.yaml")), reading)
    assert blocks.valid
    assert blocks.value == [
        FileBlock("a.md", str(tmp_path / "a.md"), "a"),
        ImageBlock("./b.png", str(tmp_path / "b.png"), hashlib.sha256(b"\x89PNG\r\n\x1a\n").hexdigest()),
    ]
    assert read_files(parsed("a.md", str(tmp_path / "s.yaml")), reading) == (blocks.value[:1], True)
    assert not reading.report.count


def test_a_pdf_is_a_document_by_its_beginning(tmp_path):
    repository(tmp_path, {"a.PDF": b"\x00\xff %PDF-1.7 \xe2", "b.pdf": "<html>", "c.docx": b"PK\xff"})
    reading = reading_of(tmp_path)
    (found,) = read_files(parsed("a.PDF", str(tmp_path / "s.yaml")), reading).value
    assert (found.value, found.path) == ("a.PDF", str(tmp_path / "a.PDF"))
    digest = found.sha256
    (tmp_path / "a.PDF").write_bytes(b"%PDF-2.0")
    (found,) = read_files(parsed("a.PDF", str(tmp_path / "s.yaml")), reading_of(tmp_path)).value
    assert found.sha256 != digest  # so that a resumed run calls again
    assert not reading.report.count
    assert read_files(parsed("[b.pdf, c.docx]", str(tmp_path / "s.yaml")), reading) == ([], False)
    assert [one.code for one in reading.report.diagnostics] == ["bad-value", "not-utf-8"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["user", "text", "file", "x.md", "", "tool"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "value", "tool_calls", "name", "function"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_data_is_messages_or_is_told_what_is_wrong(tmp_path_factory, value):
    reading = reading_of(tmp_path_factory.getbasetemp())
    assert (read_messages(node_of(value, AT), "user", reading) is None) == reading.report.failed
