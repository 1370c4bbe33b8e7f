import pytest

from agentv.extensions.agents.workspaces.placing import remove_file, write_file


def test_a_file_is_written_in_place_of_whatever_stands_there(tmp_path):
    place, outside = tmp_path / "workspace", tmp_path / "outside"
    (place / "folder").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    (place / "link").symlink_to(outside)
    (place / "file").symlink_to(outside / "kept.txt")
    for path in ("link/new.txt", "file", "folder"):
        write_file(str(place), path, b"new", "100755")
    write_file(str(place), "a/link", b"../file", "120000")
    assert [one.read_text() for one in outside.iterdir()] == ["kept"]
    assert (place / "link/new.txt").read_text() == (place / "folder").read_text() == (place / "a/link").read_text()
    assert (place / "file").stat().st_mode & 0o777 == 0o755


def test_a_file_is_removed_with_the_directories_that_are_empty_then(tmp_path):
    place = tmp_path / "workspace"
    write_file(str(place.parent), "workspace/a/b/c.txt", b"", "100644")
    write_file(str(place), "a/d.txt", b"", "100644")
    remove_file(str(place), "a/b/c.txt")
    assert [one.name for one in (place / "a").iterdir()] == ["d.txt"]


@pytest.mark.parametrize("path", ["../x", "a/../../x", "", "."])
def test_no_path_leads_out(tmp_path, path):
    with pytest.raises(OSError, match="leads out"):
        write_file(str(tmp_path), path, b"", "100644")
    with pytest.raises(OSError, match="leads out"):
        remove_file(str(tmp_path), path)
