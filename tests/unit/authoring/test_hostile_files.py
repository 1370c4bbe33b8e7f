"""Every file of every valid folder, changed as by users and attackers, is valid or reported with a position.

`tests/fuzz/loader.py`, started by hand, does the same for hours, guided by coverage.
"""

import re
from contextlib import chdir
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.cli.main import run
from doubles.loading import repository
from doubles.mutants import NO_HOSTS, Project, check_reported, mutated, projects
from doubles.thorough import examples

PROJECTS = projects()
PLACES = [(name, path) for name, project in PROJECTS.items() for path in project.mutable]
PLAIN = [(name, path) for name, path in PLACES if PROJECTS[name].request == {"process_env": NO_HOSTS}]
"""Those that need no command-line options."""

ERROR = re.compile(r"error: |\S.*: error\[")
"""A line that reports an error; excerpts begin with whitespace."""

seeds = st.integers(0, 2**32)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All projects, each in its own repository."""
    home = tmp_path_factory.mktemp("projects")
    for name, project in PROJECTS.items():
        repository(home / name, project.files)
    return home


def changed(folder: Path, project: Project, path: str, seed: int) -> Path:
    """Write a mutated file and return its path."""
    file = folder / path
    file.write_bytes(mutated(project.files[path], Random(seed)))
    return file


@settings(max_examples=examples(800, 150))
@given(place=st.sampled_from(PLACES), seed=seeds)
def test_a_changed_file_is_right_or_told_where_it_is_wrong(folders: Path, place: tuple[str, str], seed: int) -> None:
    name, path = place
    project = PROJECTS[name]
    file = changed(folders / name, project, path, seed)
    try:
        with chdir(folders / name):
            check_reported(Path(project.loaded), **project.request)
    finally:
        file.write_bytes(project.files[path])


@settings(
    max_examples=examples(100, 30), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(place=st.sampled_from(PLAIN), seed=seeds)
def test_the_command_ends_well_or_with_what_is_wrong(folders, monkeypatch, capfd, place, seed):
    name, path = place
    project = PROJECTS[name]
    for variable, value in NO_HOSTS.items():
        monkeypatch.setenv(variable, value)
    file = changed(folders / name, project, path, seed)
    try:
        with chdir(folders / name):
            status = run(["validate", project.loaded])
    finally:
        file.write_bytes(project.files[path])
    told = capfd.readouterr()
    assert status in {0, 2}
    assert (status == 2) == any(ERROR.match(line) for line in told.err.splitlines())
    assert "internal-error" not in told.err + told.out
    assert "Traceback" not in told.err + told.out
    assert "\x1b" not in told.err + told.out
