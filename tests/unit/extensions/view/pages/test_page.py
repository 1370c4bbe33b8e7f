import json
import re
from base64 import b64encode
from collections import Counter
from hashlib import sha256

import pytest

from agentv.extensions.view.app import ENTRIES, static_files
from agentv.extensions.view.pages.page import BROWSER, CHUNK, CHUNK_LENGTH, START, joined, module_sources, render
from agentv.extensions.view.pages.whole import KEPT, trial_data
from agentv.model.run.grade import Check
from agentv.model.values.message import Message
from doubles.html_reports import HOSTILE, RECORD, everything, hostile_trial, report
from doubles.trials import ROOT, finished, graded, trial


def page(results=(), **given):
    return "".join(render(report(results, **given)))


def data(kind, shown, run=0):
    found = re.findall(
        rf'<script type="application/json" class="{kind}" data-run="{run}">(.*?)</script>', shown, re.DOTALL
    )
    return [json.loads(line) for element in found for line in element.split("\n")]


def test_every_trial_is_there_once_in_both_halves():
    results = everything()
    shown = page(results)
    assert [row[0] for row in data("short", shown)] == [one.trial.case.id for one in results]
    assert [one["key"] for one in data("whole", shown)] == [one.trial.key for one in results]


def test_the_policy_allows_the_script_and_the_style_by_their_bytes_and_nothing_else():
    shown = page()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', shown)[1]
    scripts = re.findall(r"<script>(.*?)</script>", shown, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", shown, re.DOTALL)[1]
    digests = [b64encode(sha256(text.encode()).digest()).decode() for text in (*scripts, style)]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{digests[0]}' 'sha256-{digests[1]}'; style-src 'sha256-{digests[2]}'; "
        "base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    assert shown.index("Content-Security-Policy") < shown.index("<style>")


def test_only_the_two_halves_of_the_frame_are_markup():
    plain, hostile = (re.sub(r"<!doctype.*?</style>", "", page(one), flags=re.DOTALL) for one in ([], _hostile()))
    assert frame_tags(hostile) == frame_tags(plain)


def frame_tags(shown):
    tags = re.findall(r"<[^>]*>", shown.split("<script>")[0])
    return [tag for tag in tags if "data-run" not in tag and tag != "</script>"]


def _hostile():
    return [hostile_trial(number, text) for number, text in enumerate(HOSTILE)]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_run_id_is_text(text):
    head = page(run_id=text).split("<style>")[0]
    assert re.search(r"<title>([^<]*) · agentv</title>", head)


MARKUP = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "</", "<!--")
FORBIDDEN = (*MARKUP, "eval(", "Function(", "http:", "https:")


def test_no_module_makes_markup_of_text():
    for path, source in module_sources().items():
        assert len(source.splitlines()) < 500
        for forbidden in FORBIDDEN:
            assert forbidden not in source.replace("http://www.w3.org/2000/svg", ""), (path, forbidden)


def test_the_script_of_a_file_asks_nobody():
    script = re.findall(r"<script>(.*?)</script>", page(), re.DOTALL)[1]
    assert not re.search(r"\bfetch\(|EventSource|XMLHttpRequest|sendBeacon|WebSocket", script)


def test_the_library_is_as_it_was_published():
    library = (BROWSER / "vendor" / "markdown-it.js").read_text(encoding="utf-8")
    notice, published = library.split("*/\n", 1)
    assert "Permission is hereby granted" in notice
    digest = sha256(published.encode()).hexdigest()
    assert digest == "b06c85174d2b1bb6339dfa1f0bc938cea57f62663f132a77abbf651562542443"
    assert not re.search(r"</?[sS][cC][rR][iI][pP][tT]|innerHTML|document\.write|\beval\(|\bFunction\(", library)


def test_evidence_that_is_the_answer_or_the_input_is_not_repeated():
    answer = "Yes. " * 60
    cut = f"{answer[:40]} […] {answer[-40:].strip()}"
    given = ("Yes.", answer.strip(), cut, f"{answer[:40]} […] no.", "May I return it?")
    checks = tuple(Check("says yes", True, evidence) for evidence in given)
    result = finished(
        output=answer, input=(Message("user", "May I return it?"),), scores=[graded(1.0, True, *checks, name="yes")]
    )
    shown = trial_data(result, ROOT)["checks"][0]["checks"]
    assert [one.get("evidence") for one in shown] == ["Yes.", None, None, f"{answer[:40]} […] no.", None]


def test_places_of_evidence_are_counted_as_browsers_do():
    def places(output, *spans):
        check = Check("contains 'day'", True, None, spans)
        (shown,) = trial_data(finished(output=output, scores=[graded(1.0, True, check)]), ROOT)["checks"][0]["checks"]
        return shown.get("at")

    assert places("one day", (4, 7)) == [(4, 7)]
    assert places("🎉 one day 🎉", (6, 9)) == [(7, 10)]
    assert places("\ud800 day", (2, 5)) == [(2, 5)]
    assert places("x" * KEPT + "day", (KEPT, KEPT + 3)) is None, "it lies behind what a page holds"
    assert places("one day") is None, "rows of older versions have no spans"


def test_trials_are_written_as_they_are_read():
    taken = []

    def trials():
        for number in range(CHUNK * 3 + 1):
            taken.append(number)
            yield finished(trial=trial(f"c{number}"))

    pieces = render(report(trials()))
    assert next(pieces).startswith("<!doctype html>")
    assert next(pieces)
    assert not taken
    written = 0
    for piece in pieces:
        if 'class="short"' in piece:
            written += piece.count("\n")
            assert len(taken) == written
    assert written == CHUNK * 3 + 1


def test_long_texts_end_a_chunk_early():
    shown = page([finished(output="x" * CHUNK_LENGTH), finished(), finished()])
    assert shown.count('class="whole"') == 2


def test_nothing_of_the_record_is_told_but_what_is_named():
    record = {
        **RECORD,
        "secret": "s3cret",
        "settings": {"judge": "j", "env": "s3cret"},
        "suites": [{"name": "a", "env": "s3cret"}],
    }
    shown = page(record=record)
    assert "s3cret" not in shown
    assert data("runs", shown)[0][0]["settings"] == {"judge": "j"}


DECLARED = re.compile(r"^(?:async function|function\*?|const|let|class) ([\w$]+)", re.MULTILINE)
OTHER_FORMS = re.compile(r"^(?:import\b|export\b|var\b|(?:const|let) [^\w$]).*", re.MULTILINE)


@pytest.mark.parametrize("entry", [START, *ENTRIES])
def test_a_script_declares_each_name_once_and_has_no_other_imports_and_exports(entry):
    script = joined(entry)
    assert [name for name, count in Counter(DECLARED.findall(script)).items() if count > 1] == []
    assert OTHER_FORMS.findall(script) == []
    assert entry == START or static_files()[entry] == script.encode(), "browsers get it as one file"
