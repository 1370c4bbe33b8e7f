from __future__ import annotations

import pytest

from agentv.errors import StoreError
from agentv.store.files.whole_file import check_place, write_whole


def test_the_pieces_are_the_file(tmp_path):
    write_whole(tmp_path / "a.csv", ["a,b\r\n", "1,\u00fc\r\n"])
    assert (tmp_path / "a.csv").read_bytes() == "a,b\r\n1,ü\r\n".encode()
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_an_older_file_stays_where_a_piece_cannot_be_had(tmp_path):
    (tmp_path / "a.md").write_text("older")

    def pieces():
        yield "newer"
        raise StoreError("a row is broken")

    with pytest.raises(StoreError, match="a row is broken"):
        write_whole(tmp_path / "a.md", pieces())
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"a.md": "older"}


def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a.md").symlink_to(tmp_path / "elsewhere" / "b.md")
    write_whole(tmp_path / "a.md", ["text"])
    assert (tmp_path / "a.md").is_symlink()
    assert (tmp_path / "elsewhere" / "b.md").read_text() == "text"


def test_what_the_system_refuses_is_told(tmp_path):
    with pytest.raises(StoreError, match=r"cannot write .*/none/a\.md: it does not exist"):
        write_whole(tmp_path / "none" / "a.md", ["text"])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("directory.md", "it is a directory"),
        ("/dev/null", "it is not a regular file"),
        ("file/a.md", "a part of its path is a file"),
        ("none/a.md", "it does not exist"),
        ("n" * 300 + ".md", "too long"),
        ("/proc/a.md", "it does not exist"),
    ],
)
def test_a_place_where_no_file_can_be_is_refused(tmp_path, name, told):
    (tmp_path / "directory.md").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=told):
        check_place(tmp_path / name)
