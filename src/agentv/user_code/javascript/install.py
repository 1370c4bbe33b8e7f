"""The shipped SDK put into a project, so that its files also run without agentv (`agentv init --sdk`)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from agentv.version import __version__

SDK = Path(__file__).parent / "sdk"


def install_sdk(directory: Path) -> Path:
    """Write `.agentv/node_modules/@agentv/sdk` below a project's directory, over an older one. Needs no network.

    Returns:
        The directory written: Node and bun find it from any file in `.agentv/assertions/`.

    Raises:
        OSError: it cannot be written.
    """
    place = directory / ".agentv" / "node_modules" / "@agentv" / "sdk"
    if place.is_symlink():
        place.unlink()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for file in SDK.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    package = json.loads((SDK / "package.json").read_text("utf-8")) | {"version": __version__}
    (place / "package.json").write_text(json.dumps(package, indent=2) + "\n", "utf-8")
    return place
