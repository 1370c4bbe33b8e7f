import pytest

from agentv.model.values.path_globs import GlobError, check_glob, glob_pattern


@pytest.mark.parametrize(
    ("glob", "paths", "others"),
    [
        ("tests/**", ["tests/a", "tests/a/b", "tests"], ["test", "x/tests/a", "testsx"]),
        ("./tests/", ["tests", "tests/a"], ["tests2"]),
        ("*.py", ["a.py", "a.py/b"], ["a/b.py", "a.pyc"]),
        ("**/*.py", ["a.py", "a/b/c.py"], ["a.pyc"]),
        ("**/conftest.py", ["conftest.py", "tests/conftest.py"], ["myconftest.py"]),
        ("f?.t[xy]t", ["f1.txt", "f2.tyt"], ["f.txt", "f1.tzt", "f/.txt"]),
        ("a[b", ["a[b"], ["ab"]),
        ("src/app/main.py", ["src/app/main.py", "src", "src/app"], ["src/app/other.py", "src/x"]),
        ("a+b.(c)", ["a+b.(c)"], ["aab.c"]),
    ],
)
def test_globs_of_the_workspace(glob: str, paths: list[str], others: list[str]) -> None:
    found = glob_pattern(glob, below=True, parents=True)
    assert [one for one in paths if not found.fullmatch(one)] == []
    assert [one for one in others if found.fullmatch(one)] == []


def test_a_glob_alone_describes_only_the_paths_that_it_matches() -> None:
    found = glob_pattern("src/*")
    assert found.fullmatch("src/a")
    assert not found.fullmatch("src/a/b")
    assert not found.fullmatch("src")
    assert glob_pattern("src/").fullmatch("src/a/b")


@pytest.mark.parametrize("glob", ["", "  ", "/a", "~/a", "../a", "a/../../b", "a\0", "[z-a]*"])
def test_a_glob_that_can_match_nothing_is_refused(glob: str) -> None:
    with pytest.raises(GlobError):
        check_glob(glob)
