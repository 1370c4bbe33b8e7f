"""Installed plugin packages: metadata and modules, as pip writes them to a directory of `sys.path`."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

ASSERTION = '''
from dataclasses import dataclass
from typing import Annotated

from agentv.plugins import AssertionContext, DeclaredAssertion, Doc, Grade, Nonempty, Text


@dataclass(frozen=True, slots=True)
class Twice(DeclaredAssertion):
    """The answer contains a text at least twice."""

    value: Annotated[Text, Nonempty(), Doc("the text")]

    def label(self):
        return repr(self.value)

    def grade(self, context: AssertionContext):
        if context.output is None:
            return Grade.errored("no-output", "there is no answer to grade")
        count = context.output.count(self.value)
        return Grade.of(count >= 2, f"contains {self.value!r} twice", f"found {count} times")
'''

TARGET = '''
from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentv.plugins import Doc, ProviderSettings, Secret, TargetResponse, Text


@dataclass(frozen=True, slots=True)
class Capitals(ProviderSettings):
    """Answers with the prompt in capitals."""

    short: ClassVar[str | None] = "mark"
    free: ClassVar[bool] = True

    mark: Annotated[Text, Doc("what the answer ends with")] = ""
    api_key: Annotated[Text, Secret(), Doc("a key")] = ""

    def connect(self, spec, executor):
        return Capitalizing(self.mark)


class Capitalizing:
    def __init__(self, mark):
        self.mark = mark

    async def answer(self, request):
        return TargetResponse(request.prompt.upper() + self.mark)

    async def close(self):
        pass
'''

REPORT = '''
def tap(run):
    """Test Anything Protocol."""
    for number, row in enumerate(run.rows, 1):
        yield f"{'ok' if row['status'] == 'passed' else 'not ok'} {number} {row['test_id']}\\n"
'''


EXTENSION = '''
"""What Acme adds to agentv."""

COMMANDS = {"greet": "acme_evals.commands:greet"}
COMMAND_SECTIONS = {"greet": "Share"}
OPTIONS = {"eval --polite": "acme_evals.commands:POLITE"}
BESIDE_RUNS = {"polite": "acme_evals.commands:beside"}
EXECUTORS = {"slow": "acme_evals.commands:executor"}
CONFIG_KEYS = {"acme": "acme_evals.commands:check_key"}
DIALECTS = {"acme-list": "acme_evals.dialect:ACME_LIST"}
SIGNS = {"name:acme.yaml": "acme-list"}
TRACE_FORMATS = {"lines": "acme_evals.reports:lines"}
ASSERTIONS = {"twice": "acme_evals.checks:Twice"}
PROVIDERS = {"capitals": "acme_evals.targets:Capitals"}
EXPORT_FORMATS = {".tap": "acme_evals.reports:tap"}
'''

COMMANDS = '''
import contextlib

import click


@click.command("greet")
@click.argument("name")
def greet(name):
    """Greet somebody."""
    click.echo(f"hello {name}" if name != "nobody" else 1 / 0)


POLITE = click.Option(["--polite"], is_flag=True, help="Say please.")


def beside(prepared, options, *, quiet):
    if options.get("polite"):
        click.echo("please", err=True)


def executor(prepared):
    raise click.UsageError("too slow")


def check_key(node, reading):
    if node.value != "yes":
        reading.report.error("bad-value", node, "'acme' must be yes")
'''

DIALECT = """
from agentv.plugins import DocumentDialect, Translation, node_of, plain


class AcmeList(DocumentDialect):
    title = "a list of Acme"

    def claims(self, path, root, data):
        return data.startswith(b"acme")

    def translate(self, path, root, reading, around):
        tests = [
            {"id": word, "input": word, "assert": [{"type": "contains", "value": word}]} for word in plain(root)["acme"]
        ]
        return Translation(node_of({"target": "echo", "tests": tests}, root.at))


ACME_LIST = AcmeList()
"""

LINES = """

def lines(run, paths):
    for path in paths:
        path.write_text(run.run_id)
        yield f"lines: {path}"
"""


def install(
    site: Path,
    groups: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str],
    *,
    package: str = "acme-evals",
    version: str | None = "1.2",
) -> Path:
    """Install a package into a directory that the caller puts on `sys.path`.

    Args:
        site: the directory.
        groups: `assertions`, `targets`, `reports`, `extensions` → name → `module:Class`.
        modules: path → text of its files.
        package: its name.
        version: its version; None if unknown.
    """
    metadata = site / f"{package.replace('-', '_')}{f'-{version}' if version else ''}.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = [line for group, names in groups.items() for line in _section(group, names)]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for path, text in modules.items():
        file = site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
    return metadata / "entry_points.txt"


def _section(group: str, names: Mapping[str, str]) -> list[str]:
    return [f"[agentv.{group}]", *(f"{name} = {value}" for name, value in names.items()), ""]


def install_acme(site: Path, *, package: str = "acme-evals", version: str = "1.2") -> Path:
    """Install a package with the working assertion `twice`, target `capitals` and report `tap`."""
    groups = {
        "assertions": {"twice": "acme_evals.checks:Twice"},
        "targets": {"capitals": "acme_evals.targets:Capitals"},
        "reports": {"tap": "acme_evals.reports:tap"},
    }
    files = {"__init__": "", "checks": ASSERTION, "targets": TARGET, "reports": REPORT}
    modules = {f"acme_evals/{name}.py": text for name, text in files.items()}
    return install(site, groups, modules, package=package, version=version)


def install_extension(site: Path, **files: str) -> Path:
    """Install the same as an extension, with a command `greet` and entries of most other kinds.

    Args:
        site: the directory.
        files: replacements for its modules, by name.
    """
    modules = {
        "__init__": "",
        "agentv_tables": EXTENSION,
        "commands": COMMANDS,
        "dialect": DIALECT,
        "checks": ASSERTION,
        "targets": TARGET,
        "reports": REPORT + LINES,
        **files,
    }
    named = {f"acme_evals/{name}.py": text for name, text in modules.items()}
    return install(site, {"extensions": {"acme": "acme_evals.agentv_tables"}}, named)
