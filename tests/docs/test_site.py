"""Names of agentv on the site's pages exist, and its install commands work."""

import re
import shlex
import tomllib
from pathlib import Path

import click
from diagrams import drawn
from generate import complete
from python_api import split_docstring

import agentv
from agentv.app.authored.reference import schema_text
from agentv.app.registries import registries
from agentv.cli.main import cli
from needs import needs

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "agentv"
COMING_FROM = ("deepeval", "inspect", "pydantic-evals", "pytest")
BARE_INSTALL = re.compile(r"pip install (?:-\S+ )*['\"]?agentv(?! @)(?![\w\[.-])")
"""A command that installs agentv from PyPI, where no release exists yet; with an extra, pip extends the installed
agentv."""


def known_names() -> set[str]:
    """Return the names that pages may mention: types, targets, keys and values of eval files, flags, the Python API."""
    schema = schema_text("eval")
    keys = set(re.findall(r'"(\w+)": \{', schema))
    values = {value for one in re.findall(r'"enum": \[([^\]]*)\]', schema) for value in re.findall(r'"(\w+)"', one)}
    return {*registries().assertions, *registries().providers, *keys, *values, *flags(cli), *agentv.__all__}


def flags(command: click.Command) -> set[str]:
    """Return the options of a command and all of its subcommands."""
    own = {flag for one in command.params for flag in one.opts}
    if not isinstance(command, click.Group):
        return own
    context = click.Context(command)
    below = (command.get_command(context, name) for name in command.list_commands(context))
    return own.union(*(flags(one) for one in below if one is not None))


def is_known(shown: str, known: set[str]) -> bool:
    """Whether code shown on a page is agentv's: a command with its flags, a call, a line of a file, or a name."""
    program, *words = shlex.split(shown)
    if program == "agentv":
        return words[0] in cli.list_commands(click.Context(cli)) and {
            word.partition("=")[0] for word in words if word.startswith("-")
        } <= known | {"-", "--help"}
    call = re.fullmatch(r"(?:await )?(?:agentv\.)?(\w+)\(.*\)", shown)
    return (call[1] if call else program.removesuffix(":")) in known


def test_what_pages_for_newcomers_call_agentvs_exists() -> None:
    known = known_names() | {".agentv/assertions/", "pytest"}
    table = re.compile(r"^\| (?:deepeval|Inspect|pydantic-evals|pytest) \| agentv \|\n((?:\|.*\n)+)", re.MULTILINE)
    for name in COMING_FROM:
        text = (ROOT / "docs" / "how-to" / f"from-{name}.md").read_text(encoding="utf-8")
        cells = [row.split(" | ", 1)[1] for rows in table.findall(text) for row in rows.splitlines()[1:]]
        words = [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]
        assert len(words) > 10
        assert [word for word in words if not is_known(word, known)] == [], name


def test_commands_that_pages_show_and_no_test_runs_exist() -> None:
    known, wrong = flags(cli), []
    for page in ROOT.glob("docs/**/*.md"):
        text = page.read_text(encoding="utf-8")
        lines = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)).splitlines()
        inline = re.findall(r"`(agentv [a-z][^`\n]*)`", text)
        shown = [one for one in (*inline, *(line.removeprefix("$ ") for line in lines)) if one.startswith("agentv ")]
        wrong += [
            f"{page.name}: {one}" for one in shown if not is_known(" ".join(shlex.split(one, comments=True)), known)
        ]
    assert wrong == []


def test_install_lines_work_without_a_release() -> None:
    files = [ROOT / "README.md", ROOT / "action.yml", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    # it explains from which version on a release can be installed
    files.remove(ROOT / "docs" / "how-to" / "install.md")
    files += [*ROOT.glob("src/**/*.py"), *ROOT.glob("src/**/*.md")]
    assert [str(file) for file in files if BARE_INSTALL.search(file.read_text(encoding="utf-8"))] == []
    assert BARE_INSTALL.search("- run: pip install agentv\n")
    assert not BARE_INSTALL.search("pip install 'agentv[claude]', pip install \"agentv @ git+https://x\"")


def test_the_install_page_lists_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    # empty extras are kept for older names
    extras = (extra for extra, packages in project["optional-dependencies"].items() if packages)
    assert [extra for extra in extras if f"`{extra}`" not in text] == []


def test_modules_that_pages_name_exist() -> None:
    folders = {ROOT / page: SOURCES for page in ("ARCHITECTURE.md", "CONTRIBUTING.md")}
    folders |= {ROOT / "docs/explanation/statistics-formulas.md": SOURCES / "stats"}
    folders |= {page: page.parent for page in SOURCES.glob("extensions/*/README.md")}
    lost = []
    for page, folder in folders.items():
        named = re.findall(r"`([a-z_/]+(?:\.py|/))`", page.read_text(encoding="utf-8"))
        places = (folder, SOURCES, ROOT / "benchmarks", ROOT / "tests")
        lost += [
            f"{page.relative_to(ROOT)}: {name}"
            for name in named
            if not (ROOT / name).exists() and not any(any(place.rglob(name.rstrip("/"))) for place in places)
        ]
    assert lost == []


def test_the_navigation_names_every_page() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")]
    assert [page for page in pages if not re.search(rf"(?:- |: ){re.escape(page)}$", navigation, re.MULTILINE)] == []


def test_docstrings_are_read_by_sections() -> None:
    text, sections = split_docstring(
        "Does it (SPEC section 4).\n\nMore.\n\nArgs:\n    a: the first,\n        in two lines.\n    b, c: both.\n\n"
        "Returns:\n    The result: all of it.\n\nRaises:\n    ValueError: never."
    )
    assert text == "Does it.\n\nMore."
    assert sections == {
        "Args": {"a": "the first, in two lines.", "b": "both.", "c": "both."},
        "Returns": {"": "The result: all of it."},
        "Raises": {"ValueError": "never."},
    }


def test_every_public_name_has_an_entry_and_a_description() -> None:
    for page in ("python", "python-plugins", "python-testing"):
        text = complete((ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8"))
        entries = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))
        assert len(entries) > 10
        plain = {name: re.sub(r"```text\n.*?```", "", entry, flags=re.DOTALL) for name, entry in entries.items()}
        bare = [name for name, entry in plain.items() if "." not in entry and f"\n{name} = " not in entries[name]]
        assert bare == [], page
        assert "SPEC" not in text


def test_pictures_are_small_and_shown_in_both_themes() -> None:
    files = {file.stem: file.read_bytes() for file in (ROOT / "docs" / "assets").glob("*.webp")}
    pages = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md"))
    shown = set(re.findall(r"!\[[^\]]+\]\((?:\.\./)?assets/([\w-]+)\.webp\)", pages))
    assert set(files) == shown | {f"{name}-dark" for name in shown}
    for name, content in files.items():
        assert content[:4] + content[8:12] == b"RIFFWEBP"
        assert len(content) < 100_000, f"{name}: run python docs/website/screenshots.py"


def test_diagrams_are_not_stale() -> None:
    files = {file.stem: file.read_text(encoding="utf-8") for file in (ROOT / "docs" / "assets").glob("*.svg")}
    assert files == drawn(), "run: python docs/website/diagrams.py"


@needs("mkdocs")
def test_llms_txt_has_a_line_for_each_page() -> None:
    from site_hooks import links

    (tutorial, install) = links([{"Ten minutes": "tutorial.md"}, {"Set up": ["how-to/install.md"]}])
    assert tutorial.startswith("- [Ten minutes: from an empty directory to a check in CI](tutorial.html): ")
    assert install == "- [Install](how-to/install.html): agentv needs Python 3.11 or newer, on Linux or macOS"
