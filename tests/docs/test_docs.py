"""The documentation's files are valid, and its commands print what it shows.

Marks of code blocks, which CONTRIBUTING documents for authors:

    ```yaml title=evals/a.eval.yaml    written to that path, in a directory that all blocks of the page share
    ```yaml assert                     a list of assertions, which must be valid in an eval file
    ```yaml targets                    a list of targets, which must be valid in a targets file
    ```python run                      a program that must exit with 0
    ```console exit=1                  `$ command` lines are run; each is followed by its output, in which `...`
                                       matches anything; the last one must exit with 1, all others with 0
    ```sh, ```text                     shown, not run
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import click
import pytest
from generate import PART, complete, owners_text, parts
from jsonschema import Draft202012Validator

from agentv.app.authored.reference import schema_text
from agentv.authoring.source.nodes import plain
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.cli.main import cli
from agentv.codes import CODES
from agentv.model.run.summary import Summary
from agentv.registry.extensions import NAMES
from agentv.reports.csv_rows import COLUMNS
from agentv.store.rows.rows import Row, ScoreRow
from doubles.validation import validate
from e2e.command import fork_server
from needs import needs

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("docs/**/*.md")),
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
]
FENCE = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = {"text", "sh"}
OF_A_SHELL = re.compile(r"[|&;<>()$`*?\[#~\n]")
"""A character that makes a command line need a shell, even within quotes."""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    words: tuple[str, ...]
    body: str
    line: int
    marks: dict[str, str] = field(default_factory=dict)


@cache
def text_of(page: Path) -> str:
    """Return a page's text as published on the site, including its generated parts."""
    return complete(page.read_text(encoding="utf-8"))


def blocks_of(page: Path) -> Iterator[Block]:
    text = text_of(page)
    for found in FENCE.finditer(text):
        language, *words = found["info"].split()
        marks = dict(word.split("=", 1) for word in words if "=" in word)
        plain_words = tuple(word for word in words if "=" not in word)
        yield Block(language, plain_words, found["body"], text.count("\n", 0, found.start()) + 1, marks)


def environment_of(home: Path) -> Path:
    """Return the virtual environment of a page that installs packages."""
    return Path(f"{home}-environment")


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a page's commands: the installed agentv, and nothing from the user's environment."""
    own = environment_of(home) / "bin"
    path = f"{own if own.exists() else Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    alone = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}  # no network
    return {
        "PATH": path,
        "HOME": f"{home}-user",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **alone,
    }


def make_environment(home: Path) -> None:
    """Create a virtual environment for a page that installs packages; it sees the tests' packages but cannot change
    them."""
    place = environment_of(home)
    venv.create(place, with_pip=False, symlinks=True)
    (inside,) = place.glob("lib/python*/site-packages")
    seen = sysconfig.get_path("purelib")
    (inside / "of_tests.pth").write_text(f"import site; site.addsitedir({seen!r})\n")
    programs = {"agentv": "from agentv.__main__ import main\nmain()", "pip": "import pip\nraise SystemExit(pip.main())"}
    for name, text in programs.items():
        program = place / "bin" / name
        program.write_text(f"#!{place / 'bin' / 'python'}\n{text}\n")
        program.chmod(0o755)


def commands_of(block: Block) -> Iterator[tuple[str, str]]:
    """Yield each command with its documented output."""
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, said = part.partition("\n")
        yield command, said


def matches(said: str, printed: str) -> bool:
    """Whether output matches the documented text, in which `...` matches anything; extra progress lines are ignored."""
    if "running, " not in said:
        printed = re.sub(r"^\d+/\d+ trials: .*\n", "", printed, flags=re.MULTILINE)
    pattern = ".*".join(re.escape(piece) for piece in said.rstrip().split("..."))
    return re.fullmatch(pattern, printed.rstrip(), re.DOTALL) is not None


def run_console(block: Block, home: Path) -> None:
    commands = list(commands_of(block))
    assert commands, f"line {block.line}: a console block needs lines that begin with '$ '"
    for number, (command, said) in enumerate(commands, 1):
        status, printed = run_command(command, home)
        wanted = int(block.marks.get("exit", 0)) if number == len(commands) else 0
        assert status == wanted, f"line {block.line}: {command}: exit {status}\n{printed}"
        if said.strip():
            assert matches(said, printed), f"line {block.line}: {command} printed\n{printed}"


PROGRESS = re.compile(r"^[0-9,]+/[0-9,]+ trials: .*\n", re.MULTILINE)


def run_command(command: str, home: Path) -> tuple[int, str]:
    """Return the exit status and output of a command; a plain `agentv` command runs in a fork, without a shell.

    Progress lines are left out, because their number depends on the machine's speed.
    """
    env = environment(home)
    if re.match(r"agentv ", command) and not OF_A_SHELL.search(command) and not environment_of(home).exists():
        status, out, err = fork_server().run(shlex.split(command)[1:], home, env, 60)
        return status, PROGRESS.sub("", out + err)
    ended = subprocess.run(
        ["sh", "-c", command], cwd=home, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    return ended.returncode, PROGRESS.sub("", ended.stdout + ended.stderr)


def check_assertions(block: Block, home: Path) -> None:
    indented = block.body.replace("\n", "\n  ")
    text = (
        f"judge: echo\ntests:\n- id: a\n  input: a\n  criteria: b\n  expected_output: '{{}}'\n  assert:\n  {indented}"
    )
    check_file(home / "fragment.eval.yaml", text, block)
    assert list(checker().iter_errors(data(text))) == [], f"line {block.line}"


def check_targets(block: Block, home: Path) -> None:
    project = home / "fragment"
    (project / ".agentv").mkdir(parents=True, exist_ok=True)
    (project / ".git").mkdir(exist_ok=True)
    shutil.copytree(home, project, dirs_exist_ok=True, ignore=lambda _, names: {"fragment", ".agentv"} & set(names))
    (project / ".agentv" / "targets.yaml").write_text("targets:\n" + block.body)
    check_file(project / "fragment.eval.yaml", "tests:\n- {id: a, input: a, assert: [{contains: a}]}\n", block)


def check_file(file: Path, text: str, block: Block) -> None:
    file.write_text(text)
    found = validate((str(file),), {"TOKEN": "t"})
    file.unlink()
    beside = {
        "older-spelling",
        "criteria-not-judged",
        "contradiction",
        "no-api-key",  # pages set no key
    }  # codes about the file around the fragment
    assert [f"{one.span}: {one.message}" for one in found if one.code not in beside] == [], f"line {block.line}"


def run_python(block: Block, home: Path) -> None:
    program = home / "program.py"
    program.write_text(block.body)
    status, _, printed = fork_server(libraries=True).run([str(program)], home, environment(home), 60)
    assert status == 0, f"line {block.line}: {printed}"


@cache
def checker() -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_text("eval")))


def data(text: str) -> object:
    node = read_yaml("fragment.yaml", text.encode(), Report()).value
    assert node is not None
    return plain(node)


def write_file(block: Block, home: Path) -> None:
    file = home / block.marks["title"]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(block.body)
    if block.body.startswith("#!"):
        file.chmod(0o755)


RUNS = {"assert": check_assertions, "targets": check_targets, "run": run_python}


def run_block(block: Block, home: Path) -> None:
    if "title" in block.marks:
        write_file(block, home)
    elif block.language == "console":
        run_console(block, home)
    elif block.words and block.words[0] in RUNS:
        RUNS[block.words[0]](block, home)
    else:
        assert block.language in NOT_RUN, (
            f"line {block.line}: a block of {block.language} needs a mark, so that it is run"
        )


NEEDS = {
    "cases-from-data.md": ("pyarrow",),
    "test-a-coding-agent.md": ("bwrap",),
    "write-a-plugin.md": ("editables", "hatchling"),
}
"""Setup required by a page's examples, by page name."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=str(page.relative_to(ROOT)), marks=needs(*NEEDS.get(page.name, ()))) for page in PAGES],
)
def test_a_page_is_true(page: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()  # make the page's directory a repository root
    blocks = list(blocks_of(page))
    if any(block.language == "console" and "$ pip install" in block.body for block in blocks):
        make_environment(tmp_path)
    for block in blocks:
        run_block(block, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(page)):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_pages_lead_to_headings_and_anchors(page: Path) -> None:
    for path, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", text_of(page)):
        other = (page.parent / path) if path else page
        text = text_of(other)
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        slugs |= set(re.findall(r'<a id="([\w-]+)">', text))
        assert anchor in slugs, f"{path}#{anchor}"


def test_every_generated_part_has_a_place() -> None:
    placed = [found["name"] for page in PAGES for found in PART.finditer(page.read_text(encoding="utf-8"))]
    assert sorted(placed) == sorted(parts())


def test_the_names_that_extensions_add_are_not_stale() -> None:
    assert NAMES.read_text(encoding="utf-8") == owners_text(), "run: python docs/website/generate.py"


def test_every_key_of_the_results_is_explained() -> None:
    text = (ROOT / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
    keys = {*Row.__struct_encode_fields__, *ScoreRow.__struct_encode_fields__, *Summary.__struct_fields__}
    assert {key for key in keys if f"`{key}`" not in text} == set()
    columns = re.findall(r"`([a-z_]+)`", text.partition("Its columns are ")[2].partition("`vars.NAME`")[0])
    assert columns == list(COLUMNS)


def test_every_code_that_a_page_names_exists() -> None:
    for page in PAGES:
        named = re.findall(r"\b(?:error|warning|hint)\[([a-z-]+)\]", text_of(page))
        assert [code for code in named if code not in CODES] == [], page


@pytest.mark.parametrize(
    ("said", "printed", "same"),
    [
        ("a", "a\n", True),
        ("a ... c", "a b\nb c", True),
        ("a", "ab", False),
        ("a ... c", "a b", False),
        ("[x]", "x", False),
    ],
)
def test_what_counts_as_said(said: str, printed: str, same: bool) -> None:
    assert matches(said, printed) is same


def test_a_wrong_page_is_found(tmp_path: Path) -> None:
    wrong = [
        "```yaml\na: 1\n```\n",
        "```console\n$ false\n```\n",
        "```console\n$ echo a\nb\n```\n",
        "```yaml assert\n- type: x\n```\n",
    ]
    for text in wrong:
        page = tmp_path / "page.md"
        page.write_text(text)
        (block,) = blocks_of(page)
        with pytest.raises(AssertionError):
            run_block(block, tmp_path)


def test_shell_words_of_examples_are_commands() -> None:
    """Words shown in `--help` examples are existing commands."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        found = cli.get_command(context, name)
        example = (found.epilog or "").removeprefix("Example: ")
        assert shlex.split(example)[:2] == ["agentv", name]
