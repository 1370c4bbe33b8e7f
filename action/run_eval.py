"""Runs `agentv eval` for the GitHub Action: annotations to the log, reports to a directory, Markdown to the summary.

Inputs of the action are variables; see `action.yml`. The exit status is that of `agentv eval`, or 3 if it
ended without a report.
"""

from __future__ import annotations

import codecs
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import IO

from agentv.cli.formats import ActionsStream

RUNNER_FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Variables that name files by which a step changes those after it: nothing that is evaluated needs them."""

WRONG, INCOMPLETE, INTERRUPTED = 2, 3, 130
"""Exit statuses. Without a report no case is known to have passed or failed, whatever the command returned."""

LEFT_BEHIND_S = 5
"""Seconds that the end of the step waits for what programs print that outlive the run."""

PIECE = 65536

NOTHING_RAN = """### agentv: no report

Exit status {status}: `agentv eval` wrote no report. The log of the job says why.
"""


def arguments(env: Mapping[str, str], reports: Path) -> list[str]:
    """The arguments of `agentv eval` for the inputs of the action.

    Raises:
        ValueError: a quote in an input is not closed.
    """
    paths = _words("paths", env.get("AGENTV_ACTION_PATHS", ""))
    targets = [line.strip() for line in env.get("AGENTV_ACTION_TARGETS", "").splitlines() if line.strip()]
    judge = env.get("AGENTV_ACTION_JUDGE", "").strip()
    return [
        "eval",
        *paths,
        *(word for target in targets for word in ("--target", target)),
        *(("--judge", judge) if judge else ()),
        *(("--cache",) if env.get("AGENTV_ACTION_CACHE") == "true" else ()),
        "--format",
        "github",
        *(word for name in ("report.html", "report.md", "junit.xml") for word in ("--out", str(reports / name))),
        *_words("arguments", env.get("AGENTV_ACTION_ARGUMENTS", "")),
    ]


def _words(name: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValueError(f"input `{name}`: {str(error).lower()}") from error


def main(env: Mapping[str, str]) -> int:
    """Run the evaluation, and tell the runner where its reports are."""
    reports = Path(tempfile.mkdtemp(prefix="agentv-report-", dir=env.get("RUNNER_TEMP")))
    try:
        status = _run(arguments(env, reports))
    except ValueError as error:
        sys.stdout.write(f"::error title=agentv::{error}\n")
        status = WRONG
    report = reports / "report.md"
    if not report.is_file():
        status = status if status in (WRONG, INTERRUPTED) else INCOMPLETE
        report.write_text(NOTHING_RAN.format(status=status), encoding="utf-8")
    _append(env.get("GITHUB_OUTPUT"), f"exit-status={status}\ndirectory={reports}\n")
    _append(env.get("GITHUB_STEP_SUMMARY"), report.read_text(encoding="utf-8"))
    return status


def _run(words: list[str]) -> int:
    # -P: a file of the project that is called agentv.py is not what runs
    command = [sys.executable, "-P", "-m", "agentv", *words]
    inherited = {name: value for name, value in os.environ.items() if name not in RUNNER_FILES}
    process = subprocess.Popen(command, env=inherited, stderr=subprocess.PIPE)
    relay = Thread(target=_relay, args=(process.stderr,), daemon=True)
    relay.start()
    try:
        status = process.wait()
    except BaseException:
        process.kill()
        raise
    relay.join(LEFT_BEHIND_S)
    return status


def _relay(printed: IO[bytes]) -> None:
    """Print to stderr what users' code and its programs print, none of it as a command of the runner.

    On stdout is only what agentv prints itself, with its annotations.
    """
    log = ActionsStream(sys.stderr)
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    with printed:
        while piece := os.read(printed.fileno(), PIECE):
            log.write(decoder.decode(piece))
            log.flush()


def _append(file: str | None, text: str) -> None:
    """Add to a file that the runner reads after the step; outside of a runner there is none."""
    if file:
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write(text)


if __name__ == "__main__":
    sys.exit(main(os.environ))
