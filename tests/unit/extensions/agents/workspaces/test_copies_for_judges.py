import os
from pathlib import Path

from agentv.extensions.agents.workspaces.copies import disarm


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
