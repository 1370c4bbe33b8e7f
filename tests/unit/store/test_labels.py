import os
import re
from multiprocessing.pool import ThreadPool

import pytest
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.run.labels import Label
from agentv.store.labels import append_labels, labels_file, read_labels

LABEL = Label(
    "refund", "a" * 64, "b" * 64, "pass", "ada", "2026-11-21T14:03:22.123Z", "support", "polite", "run-1",
    "openai:small", "c" * 64, judge_passed=True, note="übel\n\x1b", probability=0.25, drawn_from=40,
)  # fmt: skip


@pytest.fixture
def file(tmp_path):
    return labels_file(tmp_path, "support")


def test_labels_come_back_as_they_were_written(file):
    plain = replace(LABEL, note="", probability=None, drawn_from=None, verdict="unsure", judge_passed=False)
    append_labels(file, [LABEL])
    append_labels(file, [plain])
    append_labels(file, [])
    assert read_labels([file]) == [LABEL, plain]
    assert len(file.read_bytes().splitlines()) == 2
    assert read_labels([file.with_name("none.jsonl")]) == []


def test_the_name_of_a_suite_leads_to_no_other_directory(tmp_path):
    for name in ("../../etc/passwd", "a/b", "", "..", "Größe 2"):
        assert labels_file(tmp_path, name).parent == tmp_path / ".agentv" / "labels", name
    assert labels_file(tmp_path, "a/b").name == "a-b.jsonl"


def test_a_label_is_never_glued_to_a_line_that_was_cut_off(file):
    append_labels(file, [LABEL])
    os.truncate(file, file.stat().st_size - 20)
    append_labels(file, [LABEL])
    assert len(file.read_bytes().splitlines()) == 2
    with pytest.raises(StoreError, match=r"support\.jsonl:1: the label was cut off"):
        read_labels([file])


def test_every_bad_line_is_named(file):
    append_labels(file, [LABEL] * 8)
    good = file.read_text().splitlines()[0]
    bad = {
        2: ("<<<<<<< HEAD", "conflict marker of git"),
        3: (good.replace('"pass"', '"maybe"'), r"\$\.label"),
        4: (good.replace('"probability":0.25', '"probability":0'), "probability"),
        5: (good.replace('"person"', '"persno"'), "persno"),
        6: ("[]", "cut off|not a label"),
        7: (good[:50], "cut off"),
        8: (good.replace("a" * 64, "a"), "output_sha256"),
    }
    lines = [good, *(line for line, _ in bad.values())]
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(StoreError) as found:
        read_labels([file])
    told = str(found.value).splitlines()
    assert len(told) == len(bad)
    for line, (number, (_, says)) in zip(told, bad.items(), strict=True):
        assert f"support.jsonl:{number}: " in line
        assert re.search(says, line), line


def test_people_who_write_at_once_lose_no_line(file):
    with ThreadPool(8) as pool:
        pool.map(lambda number: append_labels(file, [replace(LABEL, case=f"c{number}")]), range(200))
    assert {label.case for label in read_labels([file])} == {f"c{number}" for number in range(200)}
