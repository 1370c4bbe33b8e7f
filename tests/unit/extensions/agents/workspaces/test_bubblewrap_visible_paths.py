from pathlib import Path

from agentv.extensions.agents.workspaces.bubblewrap import visible_paths


def is_visible(path: Path, rules: tuple[tuple[str, bool], ...]) -> bool:
    known = dict(rules)
    return next((known[one] for one in map(str, (path, *path.parents)) if one in known), False)


def test_a_tool_is_visible_with_its_installation_and_nothing_beside_it(tmp_path: Path) -> None:
    for name in ("home/node/v20/bin", "home/node/v20/lib", "home/.ssh", "home/.local/bin", "home/.local/share"):
        (tmp_path / name).mkdir(parents=True)
    path = f"{tmp_path}/home/node/v20/bin:{tmp_path}/home/.local/bin:relative:"
    rules = visible_paths(path, (), (str(tmp_path / "home"),)).rules
    assert is_visible(tmp_path / "home/node/v20/lib", rules)
    assert is_visible(tmp_path / "home/.local/bin", rules)
    assert not is_visible(tmp_path / "home/.ssh", rules)
    assert not is_visible(tmp_path / "home/.local/share", rules)


def test_a_directory_of_programs_in_the_project_shows_no_more_of_it(tmp_path: Path) -> None:
    (tmp_path / "project/bin").mkdir(parents=True)
    rules = visible_paths(f"{tmp_path}/project/bin", (), (str(tmp_path / "project"),)).rules
    assert is_visible(tmp_path / "project/bin/tool", rules)
    assert not is_visible(tmp_path / "project/suite.eval.yaml", rules)


def test_a_script_is_visible_and_not_the_directory_that_holds_the_suite(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    script, suite = tmp_path / "project/agent.py", tmp_path / "project/suite.eval.yaml"
    for one in (script, suite):
        one.touch()
    rules = visible_paths("/usr/bin", ("python3", str(script)), (str(tmp_path / "project"),)).rules
    assert is_visible(script, rules)
    assert not is_visible(suite, rules)


def test_a_hidden_file_is_never_visible_though_it_is_named(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden.py"
    hidden.touch()
    rules = visible_paths("/usr/bin", ("python3", str(hidden)), (str(hidden),)).rules
    assert not is_visible(hidden, rules)


def test_what_is_private_within_the_system_is_masked() -> None:
    rules = visible_paths("/usr/bin", (), ("/usr/share/doc",)).rules
    assert is_visible(Path("/usr/share/zoneinfo"), rules)
    assert not is_visible(Path("/usr/share/doc/x"), rules)
    assert not is_visible(Path.home(), rules)
