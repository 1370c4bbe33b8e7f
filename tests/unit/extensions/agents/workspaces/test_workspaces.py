import asyncio
import stat
from pathlib import Path

import pytest

from agentv.app.wiring import WorkspaceSettings
from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces
from agentv.model.suite.workspace import CopiedFiles, Hooks, Variant, WorkspaceCommand, WorkspaceRepository
from agentv.model.values.response import Failure
from agentv.model.values.trace import WorkspaceChanges
from doubles.opened_workspaces import Place, agent, git, printed


def shell(line: str, **keys) -> WorkspaceCommand:
    return WorkspaceCommand(shell=line, **keys)


def test_each_kind_of_change_is_told(place: Place) -> None:
    for name in ("changed", "gone", "same", "moved"):
        place.file(f"template/{name}.txt", f"{name}\nsecond line\nthird line\n")
    place.file("template/old.bin", b"\0old")
    trial = place.trial(
        "echo more >> changed.txt; rm gone.txt; mv moved.txt new.txt; printf '\\0new' > old.bin; mkdir d; echo x > d/added"
    )
    assert trial.kinds == {
        "changed.txt": "modified",
        "d/added": "added",
        "gone.txt": "deleted",
        "new.txt": "renamed",
        "old.bin": "modified",
    }
    files = {one.path: one for one in trial.changes.files}
    assert (files["changed.txt"].added_lines, files["changed.txt"].deleted_lines) == (1, 0)
    assert files["new.txt"].old_path == "moved.txt"
    assert (files["old.bin"].binary, files["old.bin"].added_lines, files["old.bin"].size) == (True, None, 4)
    assert files["gone.txt"].sha256 is None
    assert f"+binary file, 4 bytes, sha256 {files['old.bin'].sha256}" in trial.patch


def test_setup_runs_once_and_is_copied(place: Place) -> None:
    counter = place.file("count/log", "")
    beside = shell(f"echo run >> {counter}", directory=str(place.root))
    setup = (shell("echo made > made.txt; echo rc > $HOME/.rc"), beside)

    async def work(workspaces: LocalWorkspaces) -> list[str]:
        async def one() -> str:
            workspace = await workspaces.open(place.spec(setup=setup), None, {})
            assert not isinstance(workspace, Failure), workspace
            said = printed(
                await agent(workspace, "cat made.txt $HOME/.rc; echo changed > made.txt; echo x > $HOME/.rc")
            )
            changes = await workspace.finish()
            assert isinstance(changes, WorkspaceChanges)
            await workspace.close(keep=False)
            return said

        return await asyncio.gather(*(one() for _ in range(4)))

    assert place.run(work) == ["made\nrc\n"] * 4
    assert counter.read_text() == "run\n"


def test_what_setup_says_of_its_own_place_is_of_the_trial(place: Place) -> None:
    place.file("template/module.py", "print('old')\n")
    build = 'mkdir bin; printf "#!/bin/sh\\npython3 $PWD/module.py\\n" > bin/run; chmod 555 bin/run; ln -s $PWD/module.py link'
    setup = (shell(f'{build}; pwd > $HOME/.where; printf "\\0$PWD\\0" > binary'),)
    trial = place.trial(
        "echo \"print('new')\" > link; cat $HOME/.where; tr -d '\\0' < binary", setup=setup, grade="bin/run"
    )
    assert printed(trial.agent) == f"{trial.path}\n{trial.path}"
    assert printed(trial.graded) == "new\n"
    assert trial.kinds == {"module.py": "modified"}


def test_a_failed_setup_is_one_failure_for_all_trials(place: Place) -> None:
    counter = place.file("count/log", "")
    setup = (
        shell(f"echo run >> {counter}", directory=str(place.root)),
        shell("echo first; echo 'no such package' >&2; exit 3"),
    )

    async def work(workspaces: LocalWorkspaces):
        return await asyncio.gather(*(workspaces.open(place.spec(setup=setup), None, {}) for _ in range(3)))

    found = place.run(work)
    assert {one.code for one in found} == {"setup-failed"}
    assert "ended with status 3: no such package" in found[0].message
    assert counter.read_text() == "run\n"


def test_a_setup_that_hangs_is_ended(place: Place) -> None:
    trial = place.trial("true", setup=(shell("sleep 60", timeout_s=0.5),))
    assert trial.opened == Failure("setup-failed", "the setup command 'sleep 60' failed: it did not end within 0.5 s")


def test_hooks_run_around_trials_in_order(place: Place) -> None:
    log = place.file("log", "")
    beside = {"directory": str(place.root)}
    hooks = Hooks(
        before_all=(shell(f"echo before_all >> {log}", **beside),),
        before_each=(shell("echo b > by-hook.txt"), shell(f"echo before_each >> {log}", **beside)),
        after_each=(shell("cat by-agent.txt"), shell(f'ls "$AGENTV_WORKSPACE_PATH" >> {log}', **beside)),
        after_all=(shell(f"echo after_all >> {log}", **beside),),
    )

    async def work(workspaces: LocalWorkspaces) -> None:
        for _ in range(2):
            workspace = await workspaces.open(place.spec(hooks=hooks), None, {})
            assert not isinstance(workspace, Failure), workspace
            await agent(workspace, "cp by-hook.txt by-agent.txt")
            changes = await workspace.finish()
            assert isinstance(changes, WorkspaceChanges)
            assert [one.path for one in changes.files] == ["by-agent.txt"]
            assert await workspace.close(keep=False) is None

    place.run(work)
    each = ["before_each", "by-agent.txt", "by-hook.txt"]
    assert log.read_text().split() == ["before_all", *each, *each, "after_all"]


def test_a_failed_hook_is_a_failure_of_what_it_precedes(plain: Place) -> None:
    shown = plain.trial("true", hooks=Hooks(before_each=(shell("exit 2"),))).opened
    assert shown == Failure("hook-failed", "the hook 'exit 2' ended with status 2: no message")
    after = plain.trial("true", hooks=Hooks(after_each=(shell("exit 2"),)))
    assert after.closed.code == "hook-failed"


def test_an_overlay_is_part_of_the_baseline(place: Place) -> None:
    place.file("template/a.txt", "template\n")
    place.file("skill/SKILL.md", "skill\n")
    place.file("other/a.txt", "overlay.\n")
    overlays = (
        CopiedFiles(str(place.root / "skill"), ".claude/skills/refund"),
        CopiedFiles(str(place.root / "other/a.txt"), "a.txt"),
    )
    trial = place.trial("cat a.txt .claude/skills/refund/SKILL.md; echo x > new", variant=Variant("v", overlays))
    assert printed(trial.agent) == "overlay.\nskill\n"
    assert trial.kinds == {"new": "added"}


def test_a_ref_is_the_committed_template_not_the_checkout(place: Place) -> None:
    template = place.root / "template"
    place.file("template/sub/a.txt", "first\n")
    place.file("outside.txt", "x")
    git(place.root, "init", "-q", ".")
    git(place.root, "add", "template")
    git(place.root, "commit", "-qm", "one")
    git(place.root, "tag", "v1")
    place.file("template/sub/a.txt", "dirty\n")
    place.file("template/new.txt", "dirty\n")
    place.file("template/.gitattributes", "* filter=evil\n")
    git(place.root, "config", "filter.evil.smudge", f"touch {template}/ran; cat")
    trial = place.trial("find . -type f; cat sub/a.txt", variant=Variant("v", ref="v1"))
    assert printed(trial.agent) == "./sub/a.txt\nfirst\n"
    assert not (template / "ran").exists()
    assert printed(place.trial("cat sub/a.txt", variant=Variant("bare")).agent) == "dirty\n"


def test_a_ref_that_does_not_exist_is_a_failure(plain: Place) -> None:
    assert "is in no git repository" in str(plain.trial("true", variant=Variant("v", ref="v1")).opened)
    git(plain.root, "init", "-q", ".")
    assert "it has no commit 'v1'" in str(plain.trial("true", variant=Variant("v", ref="v1")).opened)


def test_variables_of_suite_workspace_and_variant_reach_the_agent_and_not_the_grader_of_another(place: Place) -> None:
    place.env["OF_SUITE"] = "suite"
    trial = place.trial(
        'echo "$OF_SUITE $OF_WORKSPACE $OF_VARIANT"',
        env={"OF_WORKSPACE": "workspace"},
        variant=Variant("v", env={"OF_VARIANT": "variant"}),
        grade='echo "$OF_SUITE $OF_WORKSPACE $OF_VARIANT"',
    )
    assert printed(trial.agent) == "suite workspace variant\n"
    assert printed(trial.graded) == "suite workspace \n"


def test_a_kept_workspace_is_as_it_was_graded(place: Place) -> None:
    place.file("hidden/test_it.py", "hidden\n")
    trial = place.trial(
        "mkdir d; echo x > d/x; chmod 500 d",
        keep=True,
        hidden=(CopiedFiles(str(place.root / "hidden"), "tests"),),
        grade="echo by-grader > g.txt",
    )
    kept = Path(trial.closed)
    assert kept.is_relative_to(place.root / "kept")
    shown = {str(one.relative_to(kept)) for one in kept.rglob("*") if one.is_file()}
    assert shown == {"d/x", "tests/test_it.py", "g.txt"}
    assert stat.S_IMODE((kept / "d").stat().st_mode) & 0o700 == 0o700


def test_graders_get_stdin_a_fresh_home_and_their_directory(place: Place) -> None:
    place.file("template/sub/x", "x\n")

    async def work(workspaces: LocalWorkspaces):
        workspace = await workspaces.open(place.spec(), None, {})
        await agent(workspace, "touch $HOME/of-agent $TMPDIR/of-agent")
        await workspace.finish()
        command = shell("cat; pwd; ls -A $HOME $TMPDIR", cwd="sub")
        found = (
            await workspace.run(command, b"input\n"),
            await workspace.run(shell("exit 7")),
            await workspace.run(shell("true", cwd="nowhere")),
        )
        await workspace.close(keep=False)
        return workspace.path, found

    path, (said, failed, nowhere) = place.run(work)
    assert printed(said).startswith(f"input\n{path}/sub\n")
    assert "of-agent" not in printed(said)
    assert failed.status == 7
    assert isinstance(nowhere, Failure)


def test_a_grader_does_not_work_behind_a_link_out_of_the_workspace(plain: Place) -> None:
    async def work(workspaces: LocalWorkspaces):
        workspace = await workspaces.open(plain.spec(), None, {})
        await agent(workspace, "ln -s / sub")
        await workspace.finish()
        found = await workspace.run(shell("pwd", cwd="sub"))
        await workspace.close(keep=False)
        return found

    assert "leads out of the workspace" in plain.run(work).message


def test_a_directory_of_the_users_own_is_used_as_it_is(place: Place) -> None:
    own = place.file("own/a.txt", "a\n").parent
    trial = place.trial("pwd; echo b > b.txt", existing=str(own), keep=True)
    assert printed(trial.agent) == f"{own}\n"
    assert trial.kinds == {"b.txt": "added"}
    assert trial.closed == str(own)
    assert sorted(one.name for one in own.iterdir()) == ["a.txt", "b.txt"]
    assert place.trial("true", existing=str(own), hidden=(CopiedFiles(str(own)),)).opened is not None


def test_the_home_of_the_host_is_used_where_the_suite_says_so(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    home = place.file("user/.config", "x\n").parent
    hidden = place.file("user/project/hidden/test_it.py", "hidden\n").parent
    monkeypatch.setenv("HOME", str(home))
    trial = place.trial(
        f"ls -A $HOME; cat {hidden}/* || true; echo y > $HOME/written",
        home="host",
        hidden=(CopiedFiles(str(hidden), "tests"),),
    )
    assert ".config" in printed(trial.agent)
    assert (home / "written").exists()
    assert ("hidden" in printed(trial.agent)) is (place.sandbox == "none")


def test_no_network_is_never_silently_the_hosts(place: Place) -> None:
    look = 'python3 -c "import socket; print([name for _, name in socket.if_nameindex()])"'
    trial = place.trial(look, network="none")
    if place.sandbox == "none":
        assert trial.opened.code == "sandbox-unavailable"
    else:
        assert printed(trial.agent) == "['lo']\n"


def test_a_missing_template_is_a_failure(plain: Place) -> None:
    trial = plain.trial("true", template=CopiedFiles(str(plain.root / "nowhere")))
    assert trial.opened.code == "workspace-failed"


def test_a_directory_that_cannot_be_made_is_a_failure(tmp_path: Path) -> None:
    workspaces = LocalWorkspaces(WorkspaceSettings(directory=str(tmp_path / "nowhere")))
    found = asyncio.run(workspaces.open(Place(tmp_path).spec(), None, {}))
    assert found == Failure("workspace-failed", "cannot make a workspace: No such file or directory")


def test_a_repository_has_its_history_and_no_later_commit(place: Place) -> None:
    origin = place.root / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main", ".")
    for text in ("one", "two", "solution"):
        place.file("origin/a.txt", f"{text}\n")
        place.file(f"origin/{text}/x", f"{text}\n")
        git(origin, "add", "-A")
        git(origin, "commit", "-qm", text)
    solution = git(origin, "rev-parse", "HEAD")
    repositories = (WorkspaceRepository(str(origin), "repo", "main", ancestor=1, sparse=("two",)),)
    look = f"cd repo; cat a.txt; ls; git log --format=%s --all; git status --short; git cat-file -e {solution} || echo absent; git remote"
    trial = place.trial(
        look + "; echo x >> a.txt; git -c user.name=a -c user.email=a commit -qam done; rm -rf .git",
        repositories=repositories,
    )
    assert printed(trial.agent).split() == ["two", "a.txt", "two", "two", "one", "absent"]
    assert trial.kinds == {"repo/a.txt": "modified"}
    assert git(origin, "rev-parse", "HEAD") == solution
