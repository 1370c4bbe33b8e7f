"""The status in meta.yaml: nothing else changes, and at any moment the file is either the old or the new one."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.prompt_library import read_meta
from agentv.authoring.source.nodes import MapNode, plain
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import StoreError
from agentv.model.suite.exam import STATUSES
from agentv.prompts.disk import Disk
from agentv.prompts.status import RewriteError, with_status, write_status
from doubles.faulty_disk import FullDisk, failing_disk, refusing_disk
from doubles.loading import reading_of

OLD = b"# target to evaluate\nowner: ada\nstatus: draft   # not yet\n"
NEW = OLD.replace(b"draft", b"ready")

REWRITTEN = {
    "in its line": ("description: x\nstatus: draft\nowner: y\n", "description: x\nstatus: ready\nowner: y\n"),
    "with a comment": ("status:   draft   # draft\n", "status:   ready   # draft\n"),
    "windows": ("\ufeffa: x\r\nstatus: draft\r\nb: y", "\ufeffa: x\r\nstatus: ready\r\nb: y"),
    "quotes": ('"status": "dr\\x61ft" # x\n', '"status": ready # x\n'),
    "an alias": ("d: &s draft\nstatus: *s # x\nz: 1\n", "d: &s draft\nstatus: ready # x\nz: 1\n"),
    "nothing": ("status:\nowner: x\n", "status: ready\nowner: x\n"),
    "further in": ("old: {status: draft}\nstatus: draft\n", "old: {status: draft}\nstatus: ready\n"),
    "beside wide letters": (
        "a: é😀 # 😀\n😀: {😀: [😀], status: draft}\nstatus: draft\n",
        "a: é😀 # 😀\n😀: {😀: [😀], status: draft}\nstatus: ready\n",
    ),
    "one line more": ("a: b\n", "a: b\nstatus: ready\n"),
    "one line more on windows": ("\ufeffa: b\r\n", "\ufeffa: b\r\nstatus: ready\r\n"),
    "behind trailing comments": ("a:\n- b # c\n# end\n", "a:\n- b # c\n# end\nstatus: ready\n"),
    "behind brackets": ("a: [b,\n c] # d\nmore:\n  x: {}\n", "a: [b,\n c] # d\nmore:\n  x: {}\nstatus: ready\n"),
    "behind a block that keeps its blank lines": ("a: |+\n  b\n\n\n", "a: |+\n  b\n\n\nstatus: ready\n"),
    "behind a text of two lines": ("a: 'x\n\n  y'\n", "a: 'x\n\n  y'\nstatus: ready\n"),
    "into an empty file": ("", "status: ready\n"),
    "over a merged one": ("base: &b {status: tested}\n<<: *b\n", "base: &b {status: tested}\n<<: *b\nstatus: ready\n"),
}


@pytest.mark.parametrize(("before", "after"), REWRITTEN.values(), ids=REWRITTEN)
def test_only_the_value_changes_or_a_line_is_added(before, after):
    assert with_status(before.encode(), "ready").decode() == after


_YOURSELF = "cannot be changed safely as it is written: write 'status: ready' yourself"
REFUSED = {
    "- a\n": "it is not a mapping",
    "a: b: c\n": "it is not valid YAML: mapping values are not allowed in this context",
    "a: b\n---\nc: d\n": "it is not valid YAML: but found another document",
    "status: draft\nstatus: draft\n": "'status' appears twice in it",
    "status: &s draft\nx: *s\n": _YOURSELF,
    "{a: b, status: draft}\n": _YOURSELF,
    "? status\n: draft\n": _YOURSELF,
    "status: |\n  draft\nowner: x\n": _YOURSELF,
    "status:\n  draft\n": _YOURSELF,
    "a: 'x\nstatus: y'\nstatus: draft\n": _YOURSELF,
    "a: b\n...\n": _YOURSELF,
    "{a: b}\n": _YOURSELF,
}


@pytest.mark.parametrize(("text", "why"), REFUSED.items())
def test_what_cannot_be_changed_alone_is_refused(text, why):
    with pytest.raises(RewriteError, match=why.replace("*", r"\*").replace("'", ".")):
        with_status(text.encode(), "ready")


def test_what_is_no_text_is_refused(tmp_path):
    with pytest.raises(RewriteError, match="not UTF-8 text \\(byte 4\\)"):
        with_status(b"a: \xff", "ready")


# -- laws -----------------------------------------------------------------------------------------

words = st.text("ab:#'\"{}[]-é😀 &*!|>,?\\%@`", min_size=1, max_size=8)
comments = st.sampled_from(["", "  # why", "\n# status: draft", "\n", "\n\n"])


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


values = (
    words.map(quoted)
    | words.map(lambda text: f"|\n  {text.strip() or 'x'}\n")
    | st.lists(words.map(quoted)).map(lambda items: "[" + ", ".join(items) + "]")
    | st.lists(words.map(quoted), min_size=1).map(lambda items: "".join(f"\n- {item}" for item in items))
    | st.sampled_from(["", "~", "1.5", "{status: draft}", "\n  status: draft", "&x y", "!!str z"])
)
entries = st.tuples(words.map(quoted), values, comments).map(lambda parts: f"{parts[0]}: {parts[1]}{parts[2]}")
states = st.sampled_from(["draft", "'draft'", '"tested"', "", "~", "&s draft", "!!str draft", ">-\n  draft"])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(entries, max_size=4, unique_by=lambda line: line.partition(": ")[0]))
    if draw(st.booleans()):
        status = draw(states)
        comment = "" if status.startswith(">") else draw(comments)  # in a block scalar it would be text
        lines.insert(draw(st.integers(0, len(lines))), f"status: {status}{comment}")
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n# end", "\n...\n"]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


def read(data: bytes) -> dict | None:
    report = Report()
    node = read_yaml("meta.yaml", data, report).value
    if report.failed:
        return None
    return plain(node) if isinstance(node, MapNode) else {}


@given(files(), st.sampled_from(STATUSES))
def test_the_loader_reads_the_same_but_for_the_status(data, to):
    before = read(data)
    if before is None:
        return
    try:
        after = with_status(data, to)
    except RewriteError:
        return  # nothing was written; forms that must work are tested above
    assert read(after) == {**before, "status": to}
    mark = b"\xef\xbb\xbf"  # before the first line
    kept = [
        line
        for line in data.removeprefix(mark).splitlines()
        if b"#" in line and b"status" not in line.partition(b"#")[0]
    ]
    assert [line for line in kept if line not in after.removeprefix(mark).splitlines()] == []


@given(st.binary(max_size=40) | st.text("status: draft\n{}[]&*'\"|>-#").map(str.encode))
def test_no_bytes_crash_it(data):
    try:
        after = with_status(data, "tested")
    except RewriteError:
        return
    assert after == data or with_status(after, "tested") == after


# -- the file -------------------------------------------------------------------------------------


@pytest.fixture
def meta(tmp_path: Path) -> Path:
    path = tmp_path / "prompt" / "meta.yaml"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


def beside(meta: Path) -> list[str]:
    return sorted(one.name for one in meta.parent.iterdir())


def test_the_status_is_written_and_mode_bits_stay(meta):
    meta.chmod(0o640)
    write_status(meta, "ready")
    assert meta.read_bytes() == NEW
    assert stat.S_IMODE(meta.stat().st_mode) == 0o640
    assert beside(meta) == ["meta.yaml"]
    assert read_meta(str(meta.parent), reading_of(meta.parent)).status == "ready"


def test_where_all_files_have_one_mode_none_is_set(meta):
    meta.chmod(0o600)
    write_status(meta, "ready", refusing_disk(errno.EPERM, "permit", "own"))
    assert meta.read_bytes() == NEW


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_of_somebody_else_stays_theirs(meta):
    os.chown(meta, 1234, 1235)
    write_status(meta, "ready")
    assert (meta.stat().st_uid, meta.stat().st_gid) == (1234, 1235)


def test_a_link_stays_a_link_and_the_file_that_it_leads_to_is_written(meta, tmp_path):
    (tmp_path / "shared").mkdir()
    real = meta.rename(tmp_path / "shared" / "real.yaml")
    meta.symlink_to(Path("..") / "shared" / "middle.yaml")
    (tmp_path / "shared" / "middle.yaml").symlink_to("real.yaml")
    write_status(meta, "ready")
    assert meta.is_symlink()
    assert real.read_bytes() == NEW
    assert sorted(one.name for one in (tmp_path / "shared").iterdir()) == ["middle.yaml", "real.yaml"]


@pytest.mark.parametrize(
    ("code", "calls", "said"),
    [
        (errno.EACCES, ("open",), "cannot write .*meta.yaml: permission denied"),
        (errno.EROFS, ("replace",), "cannot write .*meta.yaml: the file system is read-only"),
        (errno.EIO, ("sync",), "cannot write .*meta.yaml: Input/output error"),
    ],
)
def test_what_the_system_refuses_is_said(meta, code, calls, said):
    with pytest.raises(StoreError, match=said):
        write_status(meta, "ready", refusing_disk(code, *calls))
    assert (meta.read_bytes(), beside(meta)) == (OLD, ["meta.yaml"])


@pytest.mark.parametrize("room", [0, 1, len(NEW) - 1])
def test_a_full_disk_leaves_the_old_file(meta, room):
    with pytest.raises(StoreError, match="no space left on the disk"):
        write_status(meta, "ready", FullDisk(room))
    assert (meta.read_bytes(), beside(meta)) == (OLD, ["meta.yaml"])


def test_a_file_that_is_not_there_or_is_none_is_told(meta):
    with pytest.raises(StoreError, match="it does not exist"):
        write_status(meta.with_name("other.yaml"), "ready")
    with pytest.raises(StoreError, match="it is not a file"):
        write_status(meta.parent, "ready")
    meta.write_text("- a\n")
    with pytest.raises(StoreError, match=r"cannot write the status to .*: it is not a mapping"):
        write_status(meta, "ready")


def test_a_pipe_in_its_place_is_no_file_and_nobody_waits_for_it(meta):
    meta.unlink()
    os.mkfifo(meta)
    with pytest.raises(StoreError, match="it is not a file"):
        write_status(meta, "ready")


class Editor(Disk):
    """Saves the file this many times while the new one is written."""

    def __init__(self, meta: Path, times: int) -> None:
        self.meta, self.times = meta, times

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        if self.times:
            self.times -= 1
            self.meta.write_bytes(self.meta.read_bytes() + b"# saved\n")


def test_what_is_saved_meanwhile_is_not_lost(meta):
    write_status(meta, "ready", Editor(meta, 2))
    assert meta.read_bytes() == NEW + b"# saved\n# saved\n"
    assert beside(meta) == ["meta.yaml"]


def test_a_file_that_changes_all_the_time_is_given_up(meta):
    with pytest.raises(StoreError, match="other programs keep changing it"):
        write_status(meta, "ready", Editor(meta, 99))
    assert b"draft" in meta.read_bytes()
    assert beside(meta) == ["meta.yaml"]


def test_whatever_call_fails_once_the_old_file_or_the_new_one_is_there_whole(meta):
    place, refused = 0, []
    while True:
        meta.write_bytes(OLD)
        disk = failing_disk(place)
        try:
            write_status(meta, "ready", disk)
        except StoreError:
            refused.append(disk.calls[place])
            assert meta.read_bytes() == OLD, disk.calls
        else:
            assert meta.read_bytes() == NEW, disk.calls
        assert beside(meta) == ["meta.yaml"], disk.calls
        if place >= len(disk.calls):
            break
        place += 1
    assert {"open", "stat", "read", "write", "permit", "sync", "stat_at", "replace"} <= set(refused)


DYING = """
import sys
from pathlib import Path
from agentv.prompts.status import write_status
from doubles.faulty_disk import dying_disk
disk = dying_disk(int(sys.argv[2]))
write_status(Path(sys.argv[1]), "ready", disk)
"""


def test_a_process_that_dies_before_any_call_leaves_the_old_file_or_the_new_one(meta):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    seen = set()
    for place in range(30):
        meta.write_bytes(OLD)
        command = [sys.executable, "-c", DYING, str(meta), str(place)]
        ended = subprocess.run(command, env=environment, timeout=60, check=False).returncode
        seen.add(meta.read_bytes())
        if ended == 0:
            break
        assert ended == 9
    assert seen == {OLD, NEW}
    assert ended == 0
