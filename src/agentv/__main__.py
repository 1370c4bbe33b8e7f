"""`python -m agentv`, and the scripts `agentv` and `eva`."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # importing `signal` would double the time until the handler is set
import gc
import os
import sys

FIRST = """\
agentv tests AI prompts, models and agents: cases in YAML, a grade with evidence for every answer.
  agentv init    make a small example that runs at once, offline
  agentv eval    run cases and grade the answers
  agentv view    read every answer in a browser
  agentv help    list all commands; `agentv help eval` explains one
Documentation: docs/ in the repository, from docs/tutorial.md on"""
"""The output of `agentv` without arguments."""


def main() -> None:
    """Run the command `agentv`."""
    _signal.signal(_signal.SIGINT, _exit_at_once)
    if sys.argv[1:] in (["--version"], ["-V"]):
        from agentv.version import __version__

        print(f"agentv {__version__}")  # noqa: T201  # importing click would take 30 ms
        return
    if not sys.argv[1:] and "_AGENTV_COMPLETE" not in os.environ:
        print(FIRST)  # noqa: T201
        return
    _run(sys.argv[1:])


def eva() -> None:
    """Run the command `eva`, short for `agentv prompt`."""
    _signal.signal(_signal.SIGINT, _exit_at_once)
    _run(["prompt", *sys.argv[1:]])


def _exit_at_once(*_: object) -> None:
    """Exit at once: before the command starts, KeyboardInterrupt would be raised inside an import."""
    os.write(2, b"\ninterrupted; nothing was run\n")
    os._exit(130)


def _run(arguments: list[str]) -> None:
    """Run a command, then end any processes that it leaves running."""
    if sys.stderr is None:  # closed, as by `2>&-`; this takes its descriptor, so that no file of the run does
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if arguments[:1] == ["lsp"]:  # it runs no user code itself, and its output must reach the editor unbuffered
        from agentv.cli.main import run

        sys.exit(run(arguments))
    # a run creates millions of objects and almost no cycles: with the default thresholds, gc took a third of the time
    gc.set_threshold(100_000, 50, 100)
    from agentv.user_code.command_process import run_command

    def work() -> int:
        from agentv.cli.main import run

        return run(arguments)

    run_command(work)


if __name__ == "__main__":
    main()
