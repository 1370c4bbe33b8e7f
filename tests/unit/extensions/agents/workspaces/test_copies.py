"""Kept workspaces contain no secrets."""

import os
from pathlib import Path

import pytest

from agentv.extensions.agents.workspaces import copies as module
from agentv.extensions.agents.workspaces.copies import disarm
from doubles.opened_workspaces import Place

SECRET = "sk-shop-1234567890abcdef"


@pytest.fixture
def secretive(tmp_path):
    return Place(tmp_path, env={"SHOP_API_KEY": SECRET}, secrets=(SECRET,))


def contents(directory: Path) -> bytes:
    found = []
    for folder, folders, files in os.walk(directory):
        found += [os.fsencode(one) for one in (*folders, *files)]
        for name in files:
            path = Path(folder, name)
            found.append(os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes())
    return b"\n".join(found)


def test_secrets_are_taken_out_of_what_is_kept_and_a_list_says_where(secretive):
    script = (
        'echo "key: $SHOP_API_KEY!" > notes.txt; mkdir d; echo fine > d/fine.txt; chmod 400 notes.txt;'
        'printf "\\0 $SHOP_API_KEY" > binary; ln -s "/x/$SHOP_API_KEY" link; touch "$SHOP_API_KEY.txt";'
        'mkdir "$SHOP_API_KEY"; touch "$SHOP_API_KEY/in"; git init -q . 2>/dev/null; '
        'mkdir -p .git; echo "$SHOP_API_KEY" > .git/config'
    )
    trial = secretive.trial(script, keep=True)
    kept = Path(trial.closed)
    assert SECRET.encode() not in contents(kept.parent)
    assert (kept / "notes.txt").read_text() == "key: [redacted]!\n"
    assert (kept / "d/fine.txt").read_text() == "fine\n"
    said = (kept.parent / "removed-secrets.txt").read_text()
    shown = [line.partition(": ")[0] for line in said.splitlines()]
    assert shown == [".git/config", "[redacted].txt", "[redacted]", "binary", "link", "notes.txt"]


def test_a_workspace_without_a_secret_stays_as_it_is(secretive):
    kept = Path(secretive.trial("echo fine > a.txt", keep=True).closed)
    assert [one.name for one in kept.parent.iterdir()] == ["workspace"]


def test_a_large_file_is_removed_where_a_secret_is_in_it(secretive, monkeypatch):
    monkeypatch.setattr(module, "_REWRITE_LIMIT", 1_000)
    filler = "x" * 990
    trial = secretive.trial(
        f'printf "{filler}${{SHOP_API_KEY}}{filler}" > large; printf "{filler * 3}" > fine', keep=True
    )
    assert sorted(one.name for one in Path(trial.closed).iterdir()) == ["fine"]


def test_another_link_to_a_file_keeps_its_content(secretive, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text(SECRET)
    trial = secretive.trial(f"ln {outside} inside.txt", keep=True)
    assert (Path(trial.closed) / "inside.txt").read_text() == "[redacted]"
    assert outside.read_text() == SECRET


def test_nothing_in_a_copy_is_a_setting_of_the_judge_and_no_link_leads_out_of_it(tmp_path):
    outside, copy = tmp_path / "outside", tmp_path / "copy"
    outside.mkdir()
    (outside / "secret").write_text("x")
    settings = ["CLAUDE.md", "src/Agents.md", ".claude/settings.json", ".git/config", ".github/skills/a/SKILL.md"]
    kept = ["README.md", "src/a.py", ".github/workflows/ci.yml", "skills/a/SKILL.md", "CLAUDE.md.data"]
    for name in (*settings, *kept):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(name)
    links = {"absolute": outside, "up": "../outside/secret", "inside": "src/a.py", "src/back": "..", "gone": "nothing"}
    for name, target in links.items():
        (copy / name).symlink_to(target)
    disarm(str(copy))
    found = {str(Path(top, name).relative_to(copy)) for top, _, files in os.walk(copy) for name in files}
    assert found == {
        *kept,
        "CLAUDE.md.data.data",
        "src/Agents.md.data",
        ".claude.data/settings.json",
        ".git.data/config",
        ".github/skills.data/a/SKILL.md",
        *("absolute.data", "up.data", "inside", "gone"),
    }
    assert (copy / "up.data").read_text() == "a link to ../outside/secret\n"
    assert (copy / "inside").is_symlink()
    assert (copy / "src/back").is_symlink()
    assert (outside / "secret").read_text() == "x"
