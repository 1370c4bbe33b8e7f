"""The record of who started a run."""

import subprocess

from agentv.app.running.run_record import SIGNATURE, checked_out_commit, is_signed_here, signature_of

RECORD = {"run_id": "r", "settings": {"targets": ["cli:x"], "alpha": 0.05}, "suites": [{"path": "s.eval.yaml"}]}


def signed(root, env):
    return {**RECORD, SIGNATURE: signature_of(RECORD, str(root), env)}


def test_what_is_executed_is_signed_with_a_key_of_the_user_alone(tmp_path):
    env = {"AGENTV_HOME": str(tmp_path / "home")}
    record = signed(tmp_path, env)
    (key,) = (tmp_path / "home").iterdir()
    assert (key.stat().st_mode & 0o777, key.stat().st_size) == (0o600, 32)
    assert is_signed_here({**record, "name": "given later"}, str(tmp_path), env)
    assert signed(tmp_path, env) == record, "the key stays"
    for changed in (
        {"settings": {**RECORD["settings"], "targets": ["cli:y"]}},
        {"suites": [{"path": "t.eval.yaml"}]},
        {"run_id": "s"},
        {SIGNATURE: "ä"},
        {SIGNATURE: None},
    ):
        assert not is_signed_here({**record, **changed}, str(tmp_path), env), changed
    assert not is_signed_here(record, str(tmp_path / "other"), env)
    assert not is_signed_here(record, str(tmp_path), {"AGENTV_HOME": str(tmp_path / "somebody else")})


def test_a_key_that_others_can_read_signs_nothing(tmp_path):
    env = {"AGENTV_HOME": str(tmp_path / "home")}
    record = signed(tmp_path, env)
    (key,) = (tmp_path / "home").iterdir()
    key.chmod(0o640)
    assert not is_signed_here(record, str(tmp_path), env)
    assert signature_of(RECORD, str(tmp_path), env) is None
    key.chmod(0o600)
    key.write_bytes(b"")
    assert signature_of(RECORD, str(tmp_path), env) is None, "an empty key would be known to all"


def test_a_machine_without_a_place_for_a_key_runs_all_the_same(tmp_path):
    (tmp_path / "file").write_text("")
    env = {"AGENTV_HOME": str(tmp_path / "file")}
    assert signature_of(RECORD, str(tmp_path), env) is None
    assert not is_signed_here(RECORD, str(tmp_path), env)


def test_the_commit_is_found_in_a_checkout_and_in_a_linked_worktree(tmp_path):
    def git(*words):
        command = ["git", "-C", str(tmp_path / "repo"), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "repo").mkdir()
    git("init", "--quiet", "--initial-branch", "main")
    git("commit", "--quiet", "--allow-empty", "--message", "first")
    git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "linked"))
    head = git("rev-parse", "HEAD")
    assert [checked_out_commit(str(tmp_path / one)) for one in ("repo", "linked", "")] == [head, head, None]
    git("pack-refs", "--all")
    assert [checked_out_commit(str(tmp_path / one)) for one in ("repo", "linked")] == [head, head]
