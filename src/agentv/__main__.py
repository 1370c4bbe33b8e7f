"""`python -m agentv`, and the scripts `agentv` and `eva`."""

from __future__ import annotations

import sys


def main() -> None:
    """The command `agentv`."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from agentv.version import __version__

        print(f"agentv {__version__}")  # noqa: T201  # before click is imported: a version must not cost 30 ms
        return
    from agentv.cli.main import run

    sys.exit(run(sys.argv[1:]))


def eva() -> None:
    """The command `eva`: the same as `agentv prompt`."""
    from agentv.cli.main import run

    sys.exit(run(["prompt", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
