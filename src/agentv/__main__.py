"""`python -m agentv`, and the scripts `agentv` and `eva`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """The command `agentv`."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from agentv.version import __version__

        print(f"agentv {__version__}")  # noqa: T201  # before click is imported: a version must not cost 30 ms
        return
    from agentv.cli.main import run

    _leave(run(sys.argv[1:]))


def eva() -> None:
    """The command `eva`: the same as `agentv prompt`."""
    from agentv.cli.main import run

    _leave(run(["prompt", *sys.argv[1:]]))


def _leave(status: int) -> None:
    """Exit as Python does, but for a last search for cycles: it takes 0.4 s where the SDK of a model was loaded."""
    gc.disable()
    gc.freeze()
    sys.exit(status)


if __name__ == "__main__":
    main()
