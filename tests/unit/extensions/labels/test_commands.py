import pytest
from click.testing import CliRunner

from agentv.errors import UsageError
from agentv.extensions.labels.commands import command
from doubles.judged_runs import judged_run


@pytest.fixture(autouse=True)
def _run(tmp_path):
    judged_run(tmp_path, [True, False])


def run(*arguments):
    return CliRunner().invoke(command, arguments, standalone_mode=False)


def test_without_a_terminal_it_names_the_way_around():
    found = run("last").exception
    assert "agentv label last --export labels.csv" in found.hint


def test_answers_go_out_and_labels_come_in(tmp_path):
    file = tmp_path / "labels.csv"
    assert "2 answers written" in run("--export", str(file)).stderr
    text = file.read_text().replace('"Is polite","",', '"Is polite","fail",').replace("Is polite,,", "Is polite,fail,")
    file.write_text(text)
    assert "2 labels added, 0 already known, 0 left empty" in run("--import", str(file), "--by", "ada").stderr
    assert '"person":"ada"' in (tmp_path / ".agentv" / "labels" / "refunds.jsonl").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sample", "60"], "--rate and --sample conflict"),
        (["--import", "a.csv"], "--rate and --import conflict"),
        ([], "rating needs a terminal"),
    ],
)
def test_what_rating_does_not_do_is_refused(options, said):
    found = run("last", "--rate", *options).exception
    assert isinstance(found, UsageError)
    assert str(found) == said


def test_export_and_import_conflict(tmp_path):
    assert isinstance(run("--export", "a.csv", "--import", "a.csv").exception, UsageError)
