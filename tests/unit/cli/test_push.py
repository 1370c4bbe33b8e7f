from __future__ import annotations

import pytest

from agentv.app.push.choosing import chosen_remote
from agentv.app.push.remote import Remote
from agentv.cli.main import run
from agentv.errors import LoadError, UsageError
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
        assert "the server has all of 1 run already\n" in said
        assert "0000/index.jsonl:1: this row was changed after it was written" in said
        assert said.endswith("1 of 2 runs were not pushed\n")
        assert run(["push", RUN_ID, "--all"]) == 2
        assert run(["push", "nope"]) == 2


def test_where_to_push_comes_from_the_configuration(project):
    with pytest.raises(UsageError, match="nothing says where to push to"):
        chosen_remote(None, {})
    configured(project, f"results:\n  remote: {ADDRESS}\n  token: ${{{{ AGENTV_TOKEN }}}}\n")
    assert chosen_remote(None, {"AGENTV_TOKEN": "agentv_x"}) == Remote(ADDRESS, "agentv_x")
    assert chosen_remote(ADDRESS + "2", {"AGENTV_TOKEN": "agentv_x"}).address == ADDRESS + "2"
    with pytest.raises(LoadError, match="AGENTV_TOKEN"):
        chosen_remote(None, {})
    (project / ".agentv" / "config.local.yaml").write_text("results:\n  token: agentv_local\n")
    assert chosen_remote(None, {}) == Remote(ADDRESS, "agentv_local")  # so that the variable is not needed
    (project / ".agentv" / "config.local.yaml").unlink()
    configured(project, f"results:\n  remote: {ADDRESS}\n")
    with pytest.raises(LoadError, match=r"config.yaml:2:11: error\[missing-key\]: there is no token"):
        chosen_remote(None, {})
    (project / ".agentv" / "config.local.yaml").write_text("results:\n  token: agentv_local\n")
    assert chosen_remote(None, {}) == Remote(ADDRESS, "agentv_local")
    configured(project, f"results:\n  remote: {ADDRESS}\n  tokn: x\n")
    with pytest.raises(LoadError, match=r"tokn.*did you mean 'token'"):
        chosen_remote(None, {})
    configured(project, "results:\n  mode: github\n  repo: org/results\n")  # AgentV's, which means something else
    with pytest.raises(UsageError, match="nothing says where"):
        chosen_remote(None, {"AGENTV_TOKEN": "agentv_x"})
