"""The shipped SDK put into a project, so that its files also run without agentv (`agentv init --sdk`)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from agentv.version import __version__

SDK = Path(__file__).parent / "sdk"


_NAMES = ("@agentv/sdk", "@agentv/eval", "agentv")


def install_sdk(directory: Path) -> Path:
    """Write `.agentv/node_modules/@agentv/sdk` below a project's directory, over an older one. Needs no network.

    Links in `node_modules` lead to it under all its names, so that files outside `.agentv` find it too; a package that
    was installed there stays.

    Returns:
        The directory written.

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
    for packages in (directory / ".agentv" / "node_modules", directory / "node_modules"):
        for link in (packages / name for name in _NAMES):
            if not os.path.lexists(link):
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(os.path.relpath(place, link.parent), target_is_directory=True)
    return place
