"""The index of a growing run: what is read, when, and the result."""

import os

import msgspec
import pytest

from agentv.errors import StoreError
from agentv.extensions.view.cases import CaseQuery, NoSuchCaseError, case_at, page_of_cases
from agentv.extensions.view.growing import GrowingRun
from agentv.extensions.view.pages.entries import Entries
from agentv.extensions.view.trial import whole_trial
from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import row_of
from agentv.store.totals.tally import STATUSES
from doubles.html_reports import HOSTILE, early_stopped_samples, hostile_trial, samples
from doubles.stored_runs import write_run
from doubles.trials import ROOT, finished, trial


@pytest.fixture
def path(tmp_path):
    return tmp_path / "20261121T140322Z-7f3a"


def grown(path, number=0):
    return GrowingRun(path, ROOT, path.parent / f"{number}.sqlite")


def lines(*results):
    return [to_json(row_of(one, ROOT)) + b"\n" for one in results]


def append(path, *pieces):
    with (path / "index.jsonl").open("ab") as file:
        file.writelines(pieces)


def listed(run, **query):
    run.catch_up(60)  # a busy machine reads less in the usual time
    return page_of_cases(run, CaseQuery(**query))


def ids(run, **query):
    return [one.id for one in listed(run, **query).cases]


def some(number):
    statuses = ("passed", "failed", "errored", "skipped", "shown")
    return [
        finished(
            statuses[at % 5], trial=trial(f"case-{at}", tags=("even",) if at % 2 == 0 else ("odd",)), score=at / number
        )
        for at in range(number)
    ]


def test_entries_are_those_of_the_static_report(path):
    results = [
        *some(7),
        *samples(True, True, False, name="any", aggregate="pass_any"),
        *samples(True, False, name="mean"),
        *early_stopped_samples("early", True, True, True, True, True, True, True),
        *early_stopped_samples("undecided", True, False),
    ]
    write_run(path, results)
    entries = Entries()
    short = [entries.short(one) for one in results]
    tables = entries.tables()
    verdicts = {row[0]: STATUSES[row[6] if row[14] < 0 else tables["verdicts"][row[14]]] for row in short}
    found = {one.id: one for one in listed(grown(path)).cases}
    assert {name: one.status for name, one in found.items()} == verdicts
    assert {name: len(one.trials) for name, one in found.items()}["any"] == 3
    told = {row[0]: tables["early"][row[14]] for row in short if row[14] >= 0}
    assert {name: found[name].early for name in told} == told
    by_trial = sorted(
        (one.id, of.sample, of.teaser, of.cost, of.duration) for one in found.values() for of in one.trials
    )
    assert by_trial == sorted((row[0], row[4], row[13], row[10], row[9]) for row in short)
    assert found["mean"].score == 0.5


def test_rows_are_read_as_they_are_written(path):
    write_run(path, some(3))
    run = grown(path)
    assert listed(run).total == 3
    first, second = lines(*(finished(trial=trial(name)) for name in ("new", "torn")))
    append(path, first, second[:40])
    assert set(ids(run)) == {"case-0", "case-1", "case-2", "new"}
    append(path, second[40:])
    assert listed(run).total == 5
    assert listed(run).counts.passed == 3


def test_the_last_row_of_a_trial_counts(path):
    write_run(path, [finished("failed", trial=trial("a"), output="zebra"), finished("passed", trial=trial("b"))])
    run = grown(path)
    assert listed(run).counts.failed == 1
    assert [group.cases for group in run.failures()] == [1]
    append(path, *lines(finished("passed", trial=trial("a"), output="giraffe")))
    assert (listed(run).counts.passed, listed(run).counts.failed, listed(run).total) == (2, 0, 2)
    assert run.failures() == []
    assert (ids(run, q="zebra"), ids(run, q="giraffe")) == ([], ["a"])
    (case,) = listed(run, id=("a",)).cases
    assert whole_trial(run, case.trials[0].trial)["output"] == "giraffe"


@pytest.mark.parametrize("how", ["truncated", "replaced", "edited", "deleted"])
def test_a_file_that_is_another_is_read_again(path, how):
    write_run(path, some(4))
    run = grown(path)
    cursor = listed(run).cursor
    file = path / "index.jsonl"
    rows = file.read_bytes().splitlines(keepends=True)
    if how == "truncated":
        os.truncate(file, len(rows[0]))
    elif how == "replaced":
        (path / "new").write_bytes(b"".join(rows[1:]))
        (path / "new").replace(file)
    elif how == "edited":
        file.write_bytes(b"".join(rows[:3]) + rows[3].replace(b'"case-3"', b'"case-9"'))
    else:
        file.unlink()
    expected = {
        "truncated": ["case-0"],
        "replaced": ["case-1", "case-2", "case-3"],
        "edited": ["case-0", "case-1", "case-2", "case-9"],
        "deleted": [],
    }
    assert sorted(ids(run)) == expected[how]
    if how != "edited":
        assert run.changed_since(cursor, 10) is None


def test_the_index_is_kept_once_the_run_is_over_and_believed_only_of_its_rows(path):
    write_run(path, some(4))
    run = grown(path)
    listed(run)
    run.store_index()
    kept = path / "view.sqlite"
    assert kept.is_file()
    assert oct(kept.stat().st_mode & 0o777) == "0o600"
    before = kept.read_bytes()
    again = grown(path, 1)
    assert msgspec.structs.replace(listed(again), cursor="") == msgspec.structs.replace(listed(run), cursor="")
    assert not (path.parent / "1.sqlite").exists()
    append(path, *lines(finished(trial=trial("later"))))
    assert listed(again).total == 5
    assert [group.cases for group in again.failures()] == [group.cases for group in run.failures()]
    assert kept.read_bytes() == before
    write_again = grown(path, 2)
    (path / "index.jsonl").write_bytes(b"".join(lines(finished(trial=trial("only")))))
    assert ids(write_again) == ["only"]


def test_a_run_that_is_resumed_while_it_is_viewed_grows_although_its_kept_index_is_removed(path):
    write_run(path, some(4))
    run = grown(path)
    listed(run)
    run.store_index()
    (path / "view.sqlite").unlink()
    append(path, *lines(finished(trial=trial("later"))))
    assert [listed(run).total, listed(run).total] == [5, 5]
    assert "later" in ids(run)


@pytest.mark.parametrize("damage", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_index_is_built_again(path, damage):
    write_run(path, some(4))
    (path / "view.sqlite").write_bytes(damage)
    assert listed(grown(path)).total == 4


def test_an_index_that_is_damaged_inside_is_built_again(path):
    write_run(path, [finished(trial=trial(f"case-{at}"), output="word " * 50) for at in range(300)])
    run = grown(path)
    listed(run)
    run.store_index()
    kept = path / "view.sqlite"
    content = bytearray(kept.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    kept.write_bytes(content)
    again = grown(path, 1)
    for _ in range(2):  # the first request may meet the damage
        try:
            found = listed(again)
        except StoreError:
            continue
        assert found.total == 300
        break
    else:
        pytest.fail("it was not built again")


def test_an_index_is_no_link(path, tmp_path):
    write_run(path, some(2))
    (tmp_path / "elsewhere.sqlite").write_bytes(b"")
    (path / "view.sqlite").symlink_to(tmp_path / "elsewhere.sqlite")
    run = grown(path)
    assert listed(run).total == 2
    run.store_index()
    assert (tmp_path / "elsewhere.sqlite").read_bytes() == b""


def test_a_file_that_is_no_file_is_refused(path):
    write_run(path, some(2))
    (path / "index.jsonl").unlink()
    os.mkfifo(path / "index.jsonl")
    with pytest.raises(StoreError, match="not a regular file"):
        grown(path).catch_up()


def test_names_are_only_names(path):
    names = ["../../etc/passwd", "..", "a/b", "<b>x</b>", "100 %", "a~2", "ä\u2028", "%2e%2e"]
    write_run(
        path, [hostile_trial(number, text.encode("utf-8", "replace").decode()) for number, text in enumerate(HOSTILE)]
    )
    append(path, *lines(*(finished(trial=trial(name)) for name in names)))
    run = grown(path)
    cases = listed(run, limit=500).cases
    assert len(cases) == len(HOSTILE) + len(names)
    assert len({one.route for one in cases}) == len(cases)
    for one in cases:
        assert case_at(run, one.route) == one
    assert case_at(run, "refunds/..%2F..%2Fetc%2Fpasswd/gpt").id == "../../etc/passwd"
    with pytest.raises(NoSuchCaseError):
        case_at(run, "refunds/nothing/gpt")


def test_cases_of_one_name_in_two_files_are_two(path):

    first = trial("same")
    second = msgspec.structs.replace(first, suite=msgspec.structs.replace(first.suite, path=f"{ROOT}/other.eval.yaml"))
    write_run(path, [finished(trial=first), finished("failed", trial=second), finished(trial=trial("same~2"))])
    shown = sorted(one.route for one in listed(grown(path)).cases)
    assert shown == ["refunds/same/gpt", "refunds/same/gpt~2", "refunds/same~2/gpt"]


def test_cases_are_chosen_and_sorted(path):
    write_run(
        path,
        [
            finished(trial=trial("case-10", tags=("slow",)), duration_ms=50.0, cost_usd=0.1),
            finished("failed", trial=trial("case-9", target="haiku"), score=0.2, duration_ms=5.0),
            finished("errored", trial=trial("Other_x", suite="orders"), output=None, cost_usd=0.3),
            *samples(True, False, name="flaky"),
        ],
    )
    run = grown(path)
    assert ids(run) == ["case-9", "flaky", "Other_x", "case-10"]
    assert ids(run, order="run") == ["case-10", "case-9", "Other_x", "flaky"]
    assert ids(run, order="name") == ["Other_x", "case-9", "case-10", "flaky"]
    assert ids(run, order="slowest")[0] == "case-10"
    assert ids(run, order="costliest")[:2] == ["Other_x", "case-10"]
    assert ids(run, target="haiku") == ["case-9"]
    assert ids(run, tag="slow") == ["case-10"]
    assert ids(run, suite="orders") == ["Other_x"]
    assert ids(run, status="errored flaky", order="run") == ["Other_x", "flaky"]
    assert ids(run, id=("case-9", "flaky"), order="run") == ["case-9", "flaky"]
    assert ids(run, q="SE-1") == ["case-10"]
    assert ids(run, q="other_X") == ["Other_x"]
    assert ids(run, q='"30 days"', order="run")[0] == "case-10"
    assert ids(run, q="haiku") == ["case-9"]
    assert ids(run, q="%") == ids(run, q="***") == ids(run, q='"') == ids(run, q="') OR 1") == []
    assert set(ids(run, assertion="failed contains")) == {"case-9", "flaky"}
    cause = run.failures()[0].cause
    assert set(ids(run, cause=cause)) <= {"case-9", "flaky", "Other_x"}
    page = listed(run, start=1, limit=2, order="run")
    assert ([one.id for one in page.cases], page.start, page.total) == (["case-9", "Other_x"], 1, 4)
    assert listed(run, status="failed", target="gpt").counts.passed == 1
    for wrong in ({"limit": 501}, {"start": -1}, {"status": "green"}):
        with pytest.raises(ValueError, match=r"limit|from|status"):
            listed(run, **wrong)


def test_events_miss_nothing_and_repeat_nothing(path):
    results = [finished(trial=trial(f"case-{at}")) for at in range(30)]
    write_run(path, results[:5])
    run = grown(path)
    cursor = listed(run).cursor
    told = []
    rows = lines(*results[5:])
    for at in range(0, 25, 5):
        append(path, *rows[at : at + 5])
        run.catch_up()
        while (found := run.changed_since(cursor, 2)) is not None and found[0]:
            told += [one.case_id for one in found[0]]
            cursor = found[1]
    assert told == [f"case-{at}" for at in range(5, 30)]
    for wrong in ("", "x-1", "1", f"{cursor}0", "ffffff-0"):
        assert run.changed_since(wrong, 10) is None


def test_a_row_that_was_changed_in_its_place_is_read_again(path):
    results = [finished(trial=trial(f"case-{at}"), score=1.0) for at in range(30)]
    write_run(path, results)
    rows = path / "index.jsonl"
    run = grown(path)
    assert ids(run, status="failed") == []
    run.store_index()
    cursor = run.progress().cursor
    before, middle, after = (lines(*part) for part in (results[:15], results[15:16], results[16:]))
    changed = [middle[0].replace(b'"status":"passed"', b'"status":"failed"')]
    size = rows.stat().st_size
    rows.write_bytes(b"".join(before + changed + after))
    os.utime(rows, ns=(0, 0))  # independent of the clock's resolution
    assert (rows.stat().st_size, ids(run, status="failed")) == (size, ["case-15"])
    assert run.changed_since(cursor, 100) is None, "whoever has the rows before must read all of them again"
    run.close()
    assert ids(grown(path, 1), status="failed") == ["case-15"], "the index that was kept was believed"


def test_a_cursor_of_an_earlier_start_is_refused_so_that_no_row_is_missed(path):
    write_run(path, some(3))
    run = grown(path)
    cursor = listed(run).cursor
    again = grown(path, 1)
    assert listed(again).total == 3
    assert again.changed_since(cursor, 10) is None


def test_a_finished_index_says_what_a_growing_one_does(path):
    write_run(path, [*some(50), *samples(True, False, name="mean"), *early_stopped_samples("early", True, True, True)])
    run = grown(path)
    questions = [
        {"order": order, **chosen}
        for order in ("worst", "run", "name", "slowest", "costliest")
        for chosen in (
            {},
            {"status": "failed flaky"},
            {"q": "case-1"},
            {"tag": "even"},
            {"assertion": "failed contains"},
        )
    ]
    before = [msgspec.structs.replace(listed(run, **one), cursor="") for one in questions]
    run.store_index()
    assert (path / "view.sqlite").exists()
    assert [msgspec.structs.replace(listed(run, **one), cursor="") for one in questions] == before
    assert [msgspec.structs.replace(listed(grown(path, 1), **one), cursor="") for one in questions] == before
    assert len({tuple(case.id for case in one.cases) for one in before}) > 5


def test_a_directory_that_takes_no_index_has_it_elsewhere(path):
    write_run(path, some(5))
    (path / "view.sqlite").mkdir()
    run = grown(path)
    listed(run)
    run.store_index()
    assert not run.can_be_stored
    assert len(ids(run, order="name")) == 5
    append(path, *lines(finished(trial=trial("later"))))
    assert listed(run).total == 6


def test_a_row_of_10_mb_and_lines_that_are_none_leave_the_page_usable(path):
    write_run(path, some(3))
    append(path, b"{not a row}\n", *lines(finished(trial=trial("long"), output="zebra " * 1_700_000)))
    run = grown(path)
    run.catch_up(60)
    (case,) = listed(run, q="zebra").cases
    assert (case.id, len(case.teaser) < 1000) == ("long", True)
    run.store_index()
    again = grown(path, 1)
    assert listed(again).total == 4
    assert "no row of a run starts at byte" in again.progress().problem, "a kept index still says what it leaves out"
