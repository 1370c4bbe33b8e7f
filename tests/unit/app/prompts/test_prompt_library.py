"""Which prompts a command line means."""

from __future__ import annotations

import pytest

from agentv.app.prompts.library import Library
from agentv.errors import LoadError, UsageError
from doubles.loading import repository


@pytest.fixture
def library(tmp_path):
    def made(files):
        return Library(str(repository(tmp_path, files)), {})

    return made


TWO = {"prompts/a/prompt.md": "A", "prompts/team/b/meta.yaml": "id: bee\n"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("be", "did you mean 'bee'?"),
        ("b", None),
        ("prompts/team", "a prompt's directory contains prompt.xml, prompt.md, prompt.txt or meta.yaml"),
        ("prompts/x", None),
    ],
)
def test_what_names_no_prompt_is_refused(library, name, hint):
    with pytest.raises(UsageError) as refused:
        library(TWO).one(name)
    assert hint is None or (refused.value.hint or "").startswith(hint)


def test_an_id_that_two_prompts_have_names_none(library):
    twins = library({"prompts/a/prompt.md": "A", "prompts/b/meta.yaml": "id: a\n", "prompts/c/meta.yaml": "id: a\n"})
    assert twins.one("a").directory.endswith("/a")  # the directory of that name is the nearest
    with pytest.raises(UsageError, match="2 prompts have the id 'x'"):
        library({"prompts/b/meta.yaml": "id: x\n", "prompts/c/meta.yaml": "id: x\n"}).one("x")


def test_named_twice_is_named_once(library):
    assert [one.id for one in library(TWO).named(("a", "prompts/a", "bee"))] == ["a", "bee"]


def test_inside_a_prompt_directory_its_files_name_it(library, tmp_path):
    library(TWO)
    here = Library(str(tmp_path / "prompts" / "a"), {})
    assert here.one(".").id == "a"
    assert here.one("prompt.md").id == "a"


def test_no_library_and_an_empty_one_are_told_apart(library):
    with pytest.raises(UsageError, match="no 'prompts' directory between here and the repository root"):
        library({"other.txt": ""}).all()
    with pytest.raises(UsageError, match="contains no prompts"):
        library({"prompts/readme.txt": ""}).all()
    with pytest.raises(LoadError):
        library({".agentv/config.yaml": "prompts_dir: nowhere\n"}).all()


def test_what_is_wrong_in_meta_goes_with_its_prompt_and_can_be_silenced(library):
    wrong = library({**TWO, "prompts/a/meta.yaml": "descripton: x\n"})
    assert [one.code for one in wrong.one("a").diagnostics] == ["unknown-key"]
    assert wrong.one("bee").diagnostics == ()
    silent = library({**TWO, "prompts/a/meta.yaml": "descripton: x # agentv: ignore[unknown-key]\n"})
    assert silent.one("a").diagnostics == ()
