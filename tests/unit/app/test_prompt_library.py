"""The prompt library: which prompts a command selects, and what the list, doctor and the gates show."""

import os

import pytest

from agentv.app.prompt_exams import (
    Examiner,
    below,
    compare,
    confusion,
    demote,
    findings,
    gate_of,
    listed,
    promote,
    shown_prompt,
)
from agentv.app.prompt_library import Library
from agentv.app.running.exam_attempt import texts_home
from agentv.errors import LoadError, UsageError
from agentv.model.suite.exam import Exam, ExamRow
from agentv.model.suite.library import TextChange
from agentv.prompts.appending import append
from agentv.prompts.disk import store_texts
from agentv.prompts.gates import digests, prompt_sha256
from agentv.stats.intervals.proportion import Classified
from doubles.loading import repository


@pytest.fixture
def library(tmp_path):
    def made(files):
        return Library(str(repository(tmp_path, files)), {})

    return made


TWO = {"prompts/a/prompt.md": "A", "prompts/team/b/meta.yaml": "id: bee\n"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("be", "did you mean 'bee'?"),
        ("b", None),
        ("prompts/team", "a prompt's directory contains prompt.xml, prompt.md, prompt.txt or meta.yaml"),
        ("prompts/x", None),
    ],
)
def test_what_names_no_prompt_is_refused(library, name, hint):
    with pytest.raises(UsageError) as refused:
        library(TWO).one(name)
    assert hint is None or (refused.value.hint or "").startswith(hint)


def test_an_id_that_two_prompts_have_names_none(library):
    twins = library({"prompts/a/prompt.md": "A", "prompts/b/meta.yaml": "id: a\n", "prompts/c/meta.yaml": "id: a\n"})
    assert twins.one("a").directory.endswith("/a")  # the directory of that name is the nearest
    with pytest.raises(UsageError, match="2 prompts have the id 'x'"):
        library({"prompts/b/meta.yaml": "id: x\n", "prompts/c/meta.yaml": "id: x\n"}).one("x")


def test_named_twice_is_named_once(library):
    assert [one.id for one in library(TWO).named(("a", "prompts/a", "bee"))] == ["a", "bee"]


def test_inside_a_prompt_directory_its_files_name_it(library, tmp_path):
    library(TWO)
    here = Library(str(tmp_path / "prompts" / "a"), {})
    assert here.one(".").id == "a"
    assert here.one("prompt.md").id == "a"


def test_no_library_and_an_empty_one_are_told_apart(library):
    with pytest.raises(UsageError, match="no 'prompts' directory between here and the repository root"):
        library({"other.txt": ""}).all()
    with pytest.raises(UsageError, match="contains no prompts"):
        library({"prompts/readme.txt": ""}).all()
    with pytest.raises(LoadError):
        library({".agentv/config.yaml": "prompts_dir: nowhere\n"}).all()


def test_what_is_wrong_in_meta_goes_with_its_prompt_and_can_be_silenced(library):
    wrong = library({**TWO, "prompts/a/meta.yaml": "descripton: x\n"})
    assert [one.code for one in wrong.one("a").diagnostics] == ["unknown-key"]
    assert wrong.one("bee").diagnostics == ()
    silent = library({**TWO, "prompts/a/meta.yaml": "descripton: x # agentv: ignore[unknown-key]\n"})
    assert silent.one("a").diagnostics == ()


FILES = {
    "prompts/p/prompt.md": "Greet {{ name }}",
    "prompts/p/meta.yaml": "description: greets\nstatus: draft\n",
    "prompts/p/eval.yml": "cases: [{name: a, inputs: {name: Ann}, assert: [contains: Ann]}]\n",
}


class Desk:
    """One prompt, `p`, and the actions on it."""

    def __init__(self, root) -> None:
        self.root = repository(root, FILES)
        self.library = Library(str(root), {})

    @property
    def prompt(self):
        return self.library.one("p")

    @property
    def examined(self):
        return Examiner(self.library).examine(self.prompt)

    def write(self, name: str, text: str) -> None:
        repository(self.root, {f"prompts/p/{name}": text})

    def status(self, status: str) -> None:
        self.write("meta.yaml", f"description: greets\nstatus: {status}\n")

    def sit(self, *, passed=True, partial=False, keeps=True) -> None:
        exam = self.examined.suite.exam
        files = digests(exam.texts)
        if keeps:
            store_texts(texts_home(exam.directory), exam.texts)
        row = ExamRow(
            ts="2026-11-22T08:35:00Z",
            all_passed=passed,
            total=1,
            passed=int(passed),
            failed_cases=() if passed else ("a",),
            prompt_sha256=prompt_sha256(files),
            files=files,
            partial=partial,
        )
        append(exam.directory, row)

    def found(self) -> list[tuple[str, str, int]]:
        found = findings([self.prompt], self.library)
        return [(one.code, one.span.file.removeprefix(f"{self.root}/prompts/"), one.span.line) for one in found]


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path)


def test_a_draft_with_an_exam_has_nothing_wrong(desk):
    assert desk.found() == []
    assert (listed(desk.prompt).last, listed(desk.prompt).edited) == (None, False)


@pytest.mark.parametrize("status", ["tested", "ready"])
def test_a_status_needs_evidence(desk, status):
    desk.status(status)
    assert desk.found() == [("no-evidence", "p/meta.yaml", 2)]
    desk.sit(partial=True)
    assert desk.found() == [("no-evidence", "p/meta.yaml", 2)]
    desk.sit()
    assert desk.found() == []


def test_a_failed_exam_is_evidence_for_tested_alone(desk):
    desk.sit(passed=False)
    desk.status("tested")
    assert desk.found() == []
    desk.status("ready")
    assert desk.found() == [("no-evidence", "p/meta.yaml", 2)]
    desk.sit()
    desk.sit(passed=False)
    assert desk.found() == [("exam-not-passed", "p/meta.yaml", 2)]


@pytest.mark.parametrize(
    ("file", "text", "changed"),
    [
        ("prompt.md", "Greet {{ name }} warmly", "prompt.md"),
        ("meta.yaml", "description: welcomes\nstatus: ready\n", "meta.yaml#description"),
        ("eval.yml", FILES["prompts/p/eval.yml"] + "# again\n", "eval.yml"),
    ],
)
def test_an_edit_of_any_text_shows_everywhere(desk, file, text, changed):
    desk.sit()
    desk.status("ready")
    assert not listed(desk.prompt).edited
    desk.write(file, text)
    assert listed(desk.prompt).edited
    assert listed(desk.prompt).changes == (TextChange(changed, "edited"),)
    assert desk.found() == [("stale-evidence", "p/meta.yaml", 2)]


def test_an_edit_that_was_undone_stands_on_the_older_row(desk):
    desk.sit()
    desk.write("prompt.md", "Hail {{ name }}")
    desk.sit()
    desk.status("ready")
    desk.write("prompt.md", "Greet {{ name }}")
    one = listed(desk.prompt)
    assert (one.edited, one.changes) == (False, (TextChange("prompt.md", "edited"),))
    assert desk.found() == []


def test_a_merge_that_leaves_rows_out_of_order_neither_hides_nor_makes_evidence(desk):
    desk.sit()
    desk.sit(passed=False)
    desk.status("tested")
    log = desk.root / "prompts/p/.eval.jsonl"
    passed, failed = log.read_text().splitlines(keepends=True)
    log.write_text(failed.replace("-22T", "-23T") + passed)
    assert not gate_of(desk.examined).open
    assert not listed(desk.prompt).last.all_passed
    assert [one.all_passed for one in shown_prompt(desk.examined).exam_rows] == [True, False]
    desk.status("ready")
    assert desk.found() == [("exam-not-passed", "p/meta.yaml", 2)]
    log.write_text(passed.replace("-22T", "-24T") + failed)
    assert desk.found() == []


def test_a_partial_sitting_on_top_hides_no_edit(desk):
    desk.sit()
    desk.status("ready")
    desk.write("prompt.md", "Hail {{ name }}")
    desk.sit(partial=True)
    assert listed(desk.prompt).edited
    assert listed(desk.prompt).changes == ()


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (".eval.jsonl", "nonsense\n", ("bad-log", "p/.eval.jsonl", 1)),
        ("promt.md", "x", ("unknown-file", "p/promt.md", 1)),
        ("examples/old/inputs.yml", "name: Ann\n", ("unknown-file", "p/examples/old/inputs.yml", 1)),
        ("eval.yml", "cases: []\n", ("no-tests", "p/eval.yml", 1)),
        ("meta.yaml", "status: draft\n", ("missing-key", "p/meta.yaml", 1)),
        ("meta.yaml", f"description: {'x' * 1025}\n", ("bad-value", "p/meta.yaml", 1)),
    ],
)
def test_doctor_finds(desk, name, text, found):
    desk.write(name, text)
    assert found in desk.found()
    assert not gate_of(desk.examined).open


@pytest.mark.parametrize(
    ("gone", "found"),
    [
        ("prompt.md", ("missing-file", "p/eval.yml", 1)),
        ("meta.yaml", ("missing-file", "p/prompt.md", 1)),
        ("eval.yml", ("missing-file", "p/prompt.md", 1)),
    ],
)
def test_doctor_misses_each_file(desk, gone, found):
    (desk.root / "prompts" / "p" / gone).unlink()
    assert found in desk.found()


def test_a_prompt_of_meta_alone_lacks_all_else(desk):
    for gone in ("prompt.md", "eval.yml"):
        (desk.root / "prompts" / "p" / gone).unlink()
    assert desk.found() == [("missing-file", "p/meta.yaml", 1)] * 2


def test_a_comment_silences_a_warning(desk):
    desk.write("examples/old/inputs.yml", "name: Ann\n")
    assert [code for code, _, _ in desk.found()] == ["unknown-file"]
    desk.write("examples/old/inputs.yml", "# agentv: ignore[unknown-file]\nname: Ann\n")
    assert desk.found() == []


def test_two_prompts_of_one_id_are_told_at_the_second(desk, tmp_path):
    repository(tmp_path, {name.replace("/p/", "/q/"): text for name, text in FILES.items()})
    (tmp_path / "prompts/q/meta.yaml").write_text("description: greets\nid: p\n")
    [twin] = findings(desk.library.all(), desk.library)
    assert (twin.code, twin.span.line) == ("duplicate-id", 2)
    assert twin.span.file.endswith("/q/meta.yaml")


def test_what_prompts_share_is_told_once(desk, tmp_path):
    repository(tmp_path, {name.replace("/p/", "/q/"): text for name, text in FILES.items()})
    repository(tmp_path, {".agentv/targets.yaml": "targets: {}\n"})
    found = list(findings(desk.library.all(), desk.library))
    assert len(found) == len({(one.code, one.span) for one in found}) == 1


def test_a_required_status_is_compared_with_each(desk):
    assert [one.code for one in below([desk.prompt], "tested")] == ["status-too-low"]
    desk.status("ready")
    assert list(below([desk.prompt], "tested")) == []


def test_promotion_writes_once_the_gate_is_open_and_never_in_a_dry_run(desk):
    assert not promote(desk.examined, None, dry_run=False).written
    desk.sit()
    assert not promote(desk.examined, None, dry_run=True).written
    assert desk.prompt.meta.status == "draft"
    assert promote(desk.examined, None, dry_run=False).written
    assert desk.prompt.meta.status == "tested"
    assert promote(desk.examined, "ready", dry_run=False).written
    assert desk.prompt.meta.status == "ready"


def test_demotion_only_goes_down(desk):
    desk.status("tested")
    for to in ("tested", "ready"):
        with pytest.raises(UsageError):
            demote(desk.prompt, to, dry_run=True)
    assert demote(desk.prompt, None, dry_run=False).written
    with pytest.raises(UsageError):
        demote(desk.prompt, None, dry_run=True)


@pytest.mark.parametrize(
    ("status", "to"), [("ready", None), ("ready", "ready"), ("ready", "tested"), ("tested", "tested")]
)
def test_what_has_the_status_already_or_a_later_one_keeps_it_and_is_not_refused(desk, status, to):
    desk.status(status)
    done = promote(desk.examined, to, dry_run=False)
    shown = (done.before, done.gate.to, done.gate.open, done.refused, done.written)
    assert shown == (status, None, False, False, False)


def test_a_comparison_holds_both_sides_or_says_that_one_is_lost(desk):
    assert compare(desk.examined).exam_row is None
    desk.sit()
    assert compare(desk.examined).differences == ()
    desk.write("prompt.md", "Hail {{ name }}")
    [one] = compare(desk.examined).differences
    assert (one.before, one.after, one.lost) == (b"Greet {{ name }}", b"Hail {{ name }}", False)
    for kept in (desk.root / ".agentv" / "exams").iterdir():
        kept.unlink()
    [one] = compare(desk.examined).differences
    assert (one.before, one.lost) == (None, True)


def test_an_exam_that_cannot_be_read_is_compared_by_its_files(desk):
    desk.sit()
    desk.write("eval.yml", "cases: [\n")
    [one] = compare(desk.examined).differences
    assert (one.path, one.after) == ("eval.yml", b"cases: [\n")


def test_a_log_that_names_files_elsewhere_shows_nothing_of_them(desk, tmp_path):
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_text("secret")
    desk.write("eval.yml", "cases: [\n")
    path = f"../../../{secret.name}"
    files = {path: "0" * 64}
    append(str(desk.root / "prompts/p"), ExamRow("t", True, 1, 1, prompt_sha256=prompt_sha256(files), files=files))
    assert [one.after for one in compare(desk.examined).differences if one.path == path] == [None]


def test_a_meta_file_that_cannot_be_read_is_told_once_and_hangs_nobody(desk):
    path = desk.root / "prompts" / "p" / "meta.yaml"
    path.unlink()
    path.mkdir()
    assert desk.found() == [("missing-file", "p/meta.yaml", 1)]
    path.rmdir()
    os.mkfifo(path)
    assert desk.found() == [("missing-file", "p/meta.yaml", 1)]


QUERIES = {"trigger: a": True, "trigger: b": True, "trigger: c": True, "trigger: d": False, "trigger: e": False}
EXAM = Exam("diff", "/prompts/diff", queries=QUERIES)


@pytest.mark.parametrize(
    ("verdicts", "table", "errored", "not_run"),
    [
        ("passed passed failed passed failed", Classified(2, 1, 1, 1), 0, 0),
        ("passed errored failed errored passed", Classified(1, 0, 1, 1), 2, 0),
        ("skipped passed passed", Classified(2, 0, 0, 0), 0, 3),
        ("", Classified(), 0, 5),
    ],
)
def test_each_query_counts_once_and_what_was_not_judged_in_no_share(verdicts, table, errored, not_run):
    found = confusion(EXAM, {**dict(zip(QUERIES, verdicts.split(), strict=False)), "a case": "failed"})
    assert (*found.skills, found.errored, found.not_run) == (table.of_skill("diff"), errored, not_run)
