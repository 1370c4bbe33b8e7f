import json
import os
import signal
from pathlib import Path

import pytest

from agentv.cli.main import run
from agentv.errors import LoadError, UsageError
from agentv.extensions.labels.labelling import LabelFiles
from agentv.extensions.team.remote import Remote, chosen_remote
from agentv.extensions.team.uploaded import RunName
from agentv.model.run.labels import Label
from doubles.http_server import HttpServer
from doubles.team_servers import RUN_ID, row, team_server_in, write_run

ADDRESS = "https://evals.example.org/projects/support"


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in ("AGENTV_TOKEN", "AGENTV_REMOTE", "AGENTV_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(project, text):
    (project / ".agentv" / "config.yaml").write_text(text)


def test_tokens_from_the_command_line(project, capsys):
    def serve(*arguments):
        status = run(["serve", "--data", "server", "token", *arguments])
        return status, *capsys.readouterr()

    status, text, said = serve("create", "ci", "--project", "support", "--days", "3")
    assert (status, text[:7], text.strip() in said) == (0, "agentv_", False)
    _, listed, _ = serve("list")
    token_id = listed.split()[0]
    assert listed.split()[1:4] == ["support", "push", "ci"]
    assert text.strip() not in listed
    assert serve("revoke", token_id)[0] == 0
    assert "was revoked" in serve("list")[1]
    assert serve("revoke", token_id)[0] == 2
    assert serve("create", "ci")[0] == 2
    assert serve("create", "ci", "--project", "a", "--all-projects")[0] == 2


@pytest.mark.parametrize(
    ("address", "warns"),
    [("http://evals.example.org", True), ("https://evals.example.org", False), ("http://127.0.0.1:4290", False)],
)
def test_a_server_that_is_reached_without_tls_warns(project, capsys, monkeypatch, address, warns):
    def serve_team(state, data, listening, started, problem):
        started()
        listening.close()
        state.database.close()

    monkeypatch.setattr("agentv.extensions.team.serving.serve_team", serve_team)
    assert run(["serve", "--port", "0", "--address", address]) == 0
    said = f"warning: {address} is http://: tokens, sessions and runs are not encrypted on their way"
    assert (said in capsys.readouterr().err) == warns


def test_a_run_of_another_token_is_not_pushed_and_others_are(project, capsys, monkeypatch):
    with team_server_in(project / "server") as server:
        run_id = "20261121T140322Z-0001"
        write_run(project, row(1), run_id=run_id)
        monkeypatch.setenv("AGENTV_TOKEN", server.token("push"))
        assert run(["push", run_id, "--remote", server.address]) == 0
        monkeypatch.setenv("AGENTV_TOKEN", server.token("push"))
        assert run(["push", run_id, "--remote", server.address]) == 0  # nothing has changed
        write_run(project, row(1), row(2), run_id=run_id)
        write_run(project, row(1))
        capsys.readouterr()
        assert run(["push", "--all", "--remote", server.address]) == 3
        said = capsys.readouterr().err
    assert "push it with that token, or with one that has the scope 'admin'" in said
    assert "1 of 2 runs were not pushed" in said


def test_push_says_what_it_did_and_names_runs_that_failed(project, capsys, monkeypatch):
    write_run(project, row(1), row(2))
    other = write_run(project, row(1), run_id="20261121T140323Z-0000")
    (other / "index.jsonl").write_bytes(row(3))
    with team_server_in(project / "server") as server:
        monkeypatch.setenv("AGENTV_TOKEN", server.token())
        monkeypatch.setenv("AGENTV_REMOTE", server.address)
        assert run(["push", RUN_ID]) == 0
        assert capsys.readouterr().err == f"{RUN_ID}: 2 rows pushed\n"
        assert run(["push", "--all"]) == 3
        said = capsys.readouterr().err
        assert "the server already has 1 run\n" in said
        assert "0000/index.jsonl:1: this row was changed after it was written" in said
        assert said.endswith("1 of 2 runs were not pushed\n")
        assert run(["push", RUN_ID, "--all"]) == 2
        assert run(["push", "nope"]) == 2


def interrupting(_):
    """Press Ctrl-C while a response is awaited."""
    os.kill(os.getpid(), signal.SIGINT)
    return 0, {}, b""


def test_an_interrupted_push_says_how_it_is_continued(project, capsys, monkeypatch):
    write_run(project, row(1))
    with HttpServer(interrupting) as server:
        monkeypatch.setenv("AGENTV_TOKEN", "agentv_x")
        monkeypatch.setenv("AGENTV_REMOTE", f"{server.url}/projects/support")
        assert run(["push"]) == 130
    said = capsys.readouterr().err
    assert said == "\ninterrupted; the server keeps what was sent, and the same command sends the rest\n"


def test_where_to_push_comes_from_the_configuration(project):
    with pytest.raises(UsageError, match="nothing says where to push to"):
        chosen_remote(None, {})
    configured(project, f"results:\n  remote: {ADDRESS}\n  token: ${{{{ AGENTV_TOKEN }}}}\n")
    assert chosen_remote(None, {"AGENTV_TOKEN": "agentv_x"}) == Remote(ADDRESS, "agentv_x")
    assert chosen_remote(ADDRESS + "2", {"AGENTV_TOKEN": "agentv_x"}).address == ADDRESS + "2"
    with pytest.raises(LoadError, match="AGENTV_TOKEN"):
        chosen_remote(None, {})
    (project / ".agentv" / "config.local.yaml").write_text("results:\n  token: agentv_local\n")
    assert chosen_remote(None, {}) == Remote(ADDRESS, "agentv_local")  # the variable is not needed
    (project / ".agentv" / "config.local.yaml").unlink()
    configured(project, f"results:\n  remote: {ADDRESS}\n")
    with pytest.raises(LoadError, match=r"config.yaml:2:11: error\[missing-key\]: there is no token"):
        chosen_remote(None, {})
    (project / ".agentv" / "config.local.yaml").write_text("results:\n  token: agentv_local\n")
    assert chosen_remote(None, {}) == Remote(ADDRESS, "agentv_local")
    configured(project, f"results:\n  remote: {ADDRESS}\n  tokn: x\n")
    with pytest.raises(LoadError, match=r"tokn.*did you mean 'token'"):
        chosen_remote(None, {})
    # AgentV's `results`, with a different meaning
    configured(project, "results:\n  mode: github\n  repo: org/results\n")
    with pytest.raises(UsageError, match="nothing says where"):
        chosen_remote(None, {"AGENTV_TOKEN": "agentv_x"})


SUITE = """
name: greetings
target: echo
tests:
  - {id: one, input: hello, assert: [{type: contains, value: hello}]}
  - {id: two, input: world, assert: [{type: contains, value: moon}]}
"""


def test_a_run_is_pushed_while_it_goes_on_and_its_result_never_depends_on_it(project, capsys, monkeypatch):
    (project / "evals").mkdir()
    (project / "evals" / "a.eval.yaml").write_text(SUITE)

    names = []

    def evaluated(*arguments):
        status = run(["eval", "evals", "--json", *arguments])
        out, err = capsys.readouterr()
        return status, out, err

    with team_server_in(project / "server") as server:
        configured(project, f"results:\n  remote: {server.address}\n  token: ${{{{ AGENTV_TOKEN }}}}\n")
        status, out, err = evaluated()
        assert (status, out) == (2, "")
        assert "config.yaml:3:10: error[unset-environment]" in err
        for arguments, token, said in (
            (("--no-push",), None, ""),
            ((), server.token(), f"pushed 2 rows: {server.address}/#/run/"),
            ((), server.token("read"), "warning: not all of the run was pushed: the server refused (403)"),
        ):
            if token is not None:
                monkeypatch.setenv("AGENTV_TOKEN", token)
            status, out, err = evaluated(*arguments)
            assert status == 1
            assert json.loads(out)["cases"]["failed"] == 1
            assert said in err
            names.append(Path(json.loads(out)["results"]).name)
        states = [server.state.uploads.state(RunName("support", name, "test")) for name in names]
        shown = [(one.size > 0, one.writing) for one in states]
        assert shown == [(False, False), (True, False), (False, False)]
        monkeypatch.setenv("AGENTV_TOKEN", server.token())
        assert evaluated("--resume", names[1])[0] == 1  # a resumed run is pushed too
    status, out, err = evaluated()  # the server is down
    assert (status, json.loads(out)["cases"]["failed"]) == (1, 1)
    assert "agentv push 2" in err
    configured(project, "results:\n  remote: https://evals.example.org/support\n")
    status, out, err = evaluated()
    assert (status, out) == (2, "")
    assert "config.yaml:2:11: error[bad-value]: 'https://evals.example.org/support' is not the address" in err


def test_labels_go_to_the_server_and_come_back(project, capsys, monkeypatch):
    write_run(project, row(1))
    label = Label("c", "0" * 64, "1" * 64, "pass", "ana", "2026-11-21T14:03:22Z", "s", "a", RUN_ID, "m", "2" * 64, True)
    LabelFiles(project).add([label])
    with team_server_in(project / "server") as server:
        monkeypatch.setenv("AGENTV_TOKEN", server.token())
        monkeypatch.setenv("AGENTV_REMOTE", server.address)
        assert run(["push"]) == 0
        assert capsys.readouterr().err == f"{RUN_ID}: 1 row pushed\n1 label pushed\n"
        (project / ".agentv" / "labels" / "s.jsonl").unlink()
        assert run(["pull", "labels"]) == 0
        assert capsys.readouterr().err == "1 new label: .agentv/labels/s.jsonl\n"
        assert run(["pull", "labels"]) == 0
        assert capsys.readouterr().err == "no new labels\n"
    assert LabelFiles(project).read() == [label]
