import asyncio
from pathlib import Path
from textwrap import dedent

import pytest

from agentv.assertions.catalogue import TYPES
from agentv.assertions.user_code import custom
from agentv.assertions.user_code.custom import PythonType
from agentv.authoring.source.nearest import ASSERTION_TYPES, type_name
from agentv.registry.fields import Issue
from doubles.grading import grade, grade_async, grade_concurrently


def discover(directory: str, root: str):
    return custom.discover(directory, root, type_name)


@pytest.fixture
def project(tmp_path):
    """Return a function that writes files of `.agentv/assertions/` below a directory and discovers them."""

    def write(directory: str = ".", /, **files: str) -> Path:
        home = tmp_path / directory / ".agentv" / "assertions"
        home.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (home / name.replace("__dot__", ".")).write_text(dedent(text))
        return home

    return write


def python(tmp_path: Path, source: str, name: str = "min_words.py") -> PythonType:
    file = tmp_path / name
    file.write_text(dedent(source))
    return PythonType(file.stem.replace("_", "-"), str(file))


def built(tmp_path: Path, source: str, options=None, name: str = "min_words.py"):
    assertion = python(tmp_path, source, name).build(options or {})
    assert not isinstance(assertion, list), assertion
    return assertion


def issues(tmp_path: Path, source: str, options=None, name: str = "min_words.py") -> list[Issue]:
    return python(tmp_path, source, name).build(options or {})


# --- discovery


def test_tests_private_files_and_folders_are_no_types(tmp_path, project):
    others = ["good.test.ts", "good.spec.js", "test_good.py", "good_test.py", "good.test.py", "types.d.ts"]
    others += ["_shared.py", ".hidden.py", "notes.md", "common.cjs"]
    home = project(**dict.fromkeys(["good.py", *others], ""))
    (home / "__tests__").mkdir()
    (home / "__tests__" / "good.ts").write_text("")
    (home / "folder.py").mkdir()
    assert list(discover(str(tmp_path), str(tmp_path)).types) == ["good"]


def test_the_nearest_folder_wins_and_the_walk_ends_at_the_root(tmp_path, project):
    project(".", **{"outside.py": ""})
    project("repo", **{"far.py": ""})
    project("repo/a", **{"near.py": ""})
    (tmp_path / "repo/a/b").mkdir()
    (tmp_path / "repo/c").mkdir()
    root = str(tmp_path / "repo")
    assert list(discover(f"{root}/a/b", root).types) == ["near"]
    assert list(discover(f"{root}/c", root).types) == ["far"]
    alone = discover(f"{root}/a/b", f"{root}/a/b")
    assert (alone.types, alone.searched) == ({}, (f"{root}/a/b/.agentv/assertions",))


@pytest.mark.parametrize("ending", [".py", ".ts", ".js", ".mts", ".mjs"])
@pytest.mark.parametrize("prefix", ["", "not-", "not_", "not-not-"])
def test_every_name_that_reads_as_a_built_in_is_skipped(tmp_path, project, prefix, ending):
    names = {f"{prefix}{name}" for name in (*TYPES, *ASSERTION_TYPES)} - {"word-count"}
    home = project(**{f"{written}{ending}": "" for name in names for written in (name, name.replace("-", "_"))})
    found = discover(str(tmp_path), str(tmp_path))
    assert not found.types
    assert {(fault.code, fault.warning) for _, fault in found.issues} == {("shadowed-assertion", True)}
    assert {file for file, _ in found.issues} == set(map(str, home.iterdir()))


def test_the_complement_of_a_type_of_ones_own_has_no_file_of_its_own(tmp_path, project):
    home = project(**{"spam.py": "", "not-spam.py": "", "not-alone.py": ""})
    found = discover(str(tmp_path), str(tmp_path))
    assert sorted(found.types) == ["not-alone", "spam"]
    ((file, fault),) = found.issues
    assert (file, fault.code) == (str(home / "not-spam.py"), "ambiguous-assertion")


# --- choice of function

MARKED = """
    {imports}

    def helper(ctx):
        raise RuntimeError("not this one")

    def min_words(ctx):
        raise RuntimeError("nor this one")

    @{decorator}
    def chosen(ctx):
        return True
"""


@pytest.mark.parametrize(
    ("imports", "decorator"),
    [
        ("from agentv import define_assertion", "define_assertion"),
        ("from agentv import define_assertion", "define_assertion()"),
        ("from agentv import define_assertion as da", "da"),
        ("import agentv as av", "av.define_assertion()"),
        ("from agentv.assertions.user_code.authoring import define_assertion", "define_assertion"),
        ("import agentv.assertions.user_code.authoring", "agentv.assertions.user_code.authoring.define_assertion"),
        ("from agentv import *", "define_assertion"),
    ],
)
def test_the_marked_function_is_the_assertion(tmp_path, imports, decorator):
    assertion = built(tmp_path, dedent(MARKED).format(imports=imports, decorator=decorator))
    assert assertion.function == "chosen"
    if "*" not in imports:
        assert grade(assertion).passed


def test_a_function_in_a_branch_is_found(tmp_path):
    source = """
        try:
            import tomllib
        except ImportError:
            tomllib = None
        else:
            async def assertion(ctx): return tomllib is not None
    """
    assert grade(built(tmp_path, source)).passed


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def assertion(*, output): return True", "must take the context"),
        ("def assertion(ctx, value, /): return True", "'value' cannot be passed by name"),
        ("def assertion(ctx, *, weight=1): return True", "min_words.py:1:23: parameter 'weight'"),
        ("def assertion(ctx, *, type): return True", "parameter 'type'"),
        ("def assertion(ctx, *, timeout_s=1): return True", "parameter 'timeout_s'"),
        ("@define_assertion\ndef a(ctx): ...\n@define_assertion\ndef b(ctx): ...", "min_words.py:4:1: 'a' and 'b'"),
        ("x = '\x00'", "min_words.py"),
        ("x = " + "(" * 5000, "min_words.py"),
    ],
)
def test_a_file_that_is_no_assertion_says_where(tmp_path, source, said):
    (fault,) = issues(tmp_path, source)
    assert fault.code == "bad-assertion-file"
    assert said in fault.message


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path):
    (fault,) = PythonType("gone", str(tmp_path / "gone.py")).build({})
    assert (fault.code, "gone.py cannot be read" in fault.message) == ("bad-assertion-file", True)


def test_loading_never_runs_the_file(tmp_path):
    witness = tmp_path / "ran"
    source = f"open({str(witness)!r}, 'w').close()\ndef assertion(ctx, *, minimum: int): return True\n"
    custom = python(tmp_path, source)
    assert custom.options == ("minimum",)
    assert isinstance(custom.build({"minimum": "three"}), list)
    assert not isinstance(custom.build({"minimum": 3}), list)
    assert not witness.exists()


# --- parameters

TYPED = """
    from typing import Literal, Optional
    import typing as t

    def assertion(
        ctx, *, s: str = "", i: int = 0, f: float = 0.0, b: bool = False, l: list = (), d: dict = {},
        ls: list[str] = (), tl: t.List[int] = (), ds: dict[str, int] = {}, m: Literal["a", 1] = "a",
        o: Optional[int] = None, u: int | None = None, n: int = None, q: "int | str" = 0, x: Path = None, a: t.Any = 0,
    ):
        return True
"""


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("s", "text", 3),
        ("i", 3, True),
        ("i", 3, 3.5),
        ("f", 3.5, False),
        ("b", True, 1),
        ("l", [1], "abc"),
        ("d", {"a": 1}, [1]),
        ("ls", ["a"], [1]),
        ("tl", [1], ["a"]),
        ("ds", {"a": 1}, {"a": "b"}),
        ("m", "a", "b"),
        ("m", 1, True),
        ("o", None, "a"),
        ("n", None, "a"),
        ("q", "a", None),
    ],
)
def test_annotations_are_checked_before_anything_runs(tmp_path, name, good, bad):
    built(tmp_path, TYPED, {name: good})
    (fault,) = issues(tmp_path, TYPED, {name: bad})
    assert (fault.path, fault.code) == ((name,), "bad-value")
    assert f"'{name}' must be " in fault.message


@pytest.mark.parametrize("name", ["x", "a"])
def test_other_annotations_are_not_checked(tmp_path, name):
    built(tmp_path, TYPED, {name: ["anything"]})


@pytest.mark.parametrize("annotation", ["int |", "\0", "-" * 10_000 + "1"])
def test_an_annotation_that_is_no_python_is_not_checked(tmp_path, annotation):
    built(tmp_path, f"def assertion(ctx, *, x: {annotation!r} = 0): ...", {"x": ["anything"]})


@pytest.mark.parametrize(
    ("parameters", "short"),
    [
        ("", None),
        ("*, minimum=3", "minimum"),
        ("*, low, high", None),
        ("*, low, value", "value"),
        ("**rest", "value"),
        ("*, low, **rest", None),
    ],
)
def test_the_lone_value_fills_value_or_the_only_parameter(tmp_path, parameters, short):
    assert python(tmp_path, f"def assertion(ctx, {parameters}): ...").short == short


def test_config_is_merged(tmp_path):
    source = "def assertion(ctx, *, low: int, high: int): return ctx.config == {'low': 1, 'high': 2}"
    assert grade(built(tmp_path, source, {"low": 1, "config": {"high": 2}})).passed


# --- grading


def test_parameters_and_context_reach_the_function(tmp_path):
    source = """
        from agentv import AssertionContext, define_assertion

        @define_assertion
        def min_words(ctx: AssertionContext, *, minimum: int = 3):
            count = len((ctx.output or "").split())
            return count >= minimum
    """
    assert grade(built(tmp_path, source), "one two three").passed
    assert not grade(built(tmp_path, source), "one two").passed
    assert not grade(built(tmp_path, source, {"minimum": 5}), "one two three four").passed
    assert grade(built(tmp_path, source, {"minimum": 5}), "one two three four five").passed


async def test_async_functions_are_awaited(tmp_path):
    source = """
        import asyncio

        async def assertion(ctx, *, value):
            await asyncio.sleep(0)
            return {"score": value}
    """
    assertion = built(tmp_path, source, {"value": 0.25})

    assert [one.score for one in ([await grade_async(assertion), await grade_async(assertion)])] == [0.25, 0.25]


@pytest.mark.parametrize("prefix", ["", "async "])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no words')", "min-words raised ValueError: no words (min_words.py:2, in assertion)"),
        ("import sys; sys.exit(0)", "min-words called sys.exit: SystemExit: 0 (min_words.py:2, in assertion)"),
        ("assert ctx.output == 'x'", "min-words raised AssertionError (min_words.py:2, in assertion)"),
        ("return len(None)", "TypeError"),
    ],
)
def test_what_a_function_raises_is_an_error_with_its_last_frame(tmp_path, prefix, body, said):
    found = grade(built(tmp_path, f"{prefix}def assertion(ctx):\n    {body}\n"))
    assert found.error.code == "assertion-raised"
    assert said in found.error.message


def test_a_result_that_is_no_verdict_is_an_error(tmp_path):
    assert grade(built(tmp_path, "def assertion(ctx): ctx.output")).error.code == "bad-result"


async def test_a_file_that_raises_when_imported_is_an_error_and_is_tried_once(tmp_path):
    log = tmp_path / "log"
    source = f"""
        from pathlib import Path
        Path({str(log)!r}).write_text(Path({str(log)!r}).read_text() + "x")
        raise RuntimeError("boom")
        def assertion(ctx): return True
    """
    log.write_text("")
    found = await grade_concurrently(built(tmp_path, source), 2)
    assert [one.error.code for one in found] == ["cannot-load", "cannot-load"]
    assert "boom (min_words.py:4, in <module>)" in found[0].error.message
    assert log.read_text() == "x"


@pytest.mark.parametrize("source", ["waits()\ndef assertion(ctx): ...", "def assertion(ctx): waits()"])
async def test_a_module_or_function_that_does_not_return_can_be_left(tmp_path, source):
    left, ended = tmp_path / "left", tmp_path / "ended"
    waits = f"def waits():\n    for _ in range(1000):\n        if Path({str(left)!r}).exists(): return\n"
    more = f"        time.sleep(0.01)\n    Path({str(ended)!r}).touch()\n"
    assertion = built(tmp_path, f"import time\nfrom pathlib import Path\n{waits}{more}{source}")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(grade_async(assertion), 0.05)
    assert not ended.exists()
    left.touch()
