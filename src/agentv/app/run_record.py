"""`run.json`: what was run."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path

from agentv.app.preparation import Prepared, caches, root_of, workers_of
from agentv.model.suite import Suite
from agentv.model.values import Json, JsonObject
from agentv.store.directory import RUN, RunDirectory, read_document
from agentv.version import __version__


def settings_before(directory: RunDirectory) -> JsonObject:
    """The settings of the processes that this one goes on with; empty for a run that begins."""
    found = read_document(directory.path / RUN).get("settings")
    return found if isinstance(found, dict) else {}


def record_of(prepared: Prepared, run_id: str, before: JsonObject) -> dict[str, Json]:
    """`run.json`: what was run, without secrets.

    Args:
        prepared: what is run now.
        run_id: of the run.
        before: as `settings_before`: where answers came from once, they still come from.
    """
    cases, trials = prepared.counts
    return {
        "run_id": run_id,
        "started": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "agentv": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "git_commit": _commit(root_of(prepared.suites)),
        "planned": {"cases": cases, "trials": trials},
        "settings": _settings_record(prepared, before),
        "suites": [_suite_record(suite, root_of(prepared.suites)) for suite in prepared.suites],
    }


def _settings_record(prepared: Prepared, before: JsonObject) -> dict[str, Json]:
    settings, sample = prepared.settings, prepared.plan.settings.sample
    return {
        "paths": list(settings.paths),
        "targets": list(settings.asked_targets),
        "judge": settings.asked_judge,
        "workers": workers_of(prepared),
        "executor": settings.executor,
        "repeat": settings.repeat,
        "threshold": settings.threshold,
        "timeout_s": settings.timeout_s,
        "filter": settings.filter,
        "tags": list(settings.tags),
        "exclude_tags": list(settings.exclude_tags),
        "sample": settings.sample,
        "seed": sample.seed if sample else None,
        "limit": settings.limit,
        "regrade": settings.regrade or before.get("regrade"),
        "replay": settings.replay or before.get("replay"),
        "rerun": "failed" if "failed" in (settings.rerun, before.get("rerun")) else settings.rerun,
        "cache": caches(prepared),
    }


def _suite_record(suite: Suite, root: str) -> dict[str, Json]:
    return {
        "name": suite.name,
        "path": suite.path.removeprefix(f"{root}/"),
        "metadata": dict(suite.metadata),
        "tags": list(suite.tags),
        "targets": [{"name": target.name, **target.public} for target in suite.targets],
        "prompts": [{"id": identity, "label": label} for identity, label in suite.prompts.items()],
        "judge": suite.judge.name if suite.judge else None,
        "files": {path.removeprefix(f"{root}/"): digest for path, digest in suite.files.items()},
    }


def _commit(root: str) -> str | None:
    """The commit that is checked out, read from `.git` itself: starting git would take longer than a small run."""
    git = Path(root) / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        loose = git / name
        if loose.is_file():
            return loose.read_text(encoding="utf-8").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)
    except (OSError, UnicodeDecodeError):
        return None
