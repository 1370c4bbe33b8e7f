"""`run.json`: the settings and suites of a run, and a signature that proves that this user started it."""

from __future__ import annotations

import hmac
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from stat import S_IMODE, S_ISREG

from msgspec import Struct, convert, to_builtins

from agentv.app.planning.preparation import Prepared, caches, root_of, workers_of
from agentv.app.planning.workspaces import sandboxes_of
from agentv.app.settings import resumed_settings
from agentv.errors import StoreError
from agentv.model.run.summary import PartialRun
from agentv.model.suite.suite import MIN_PASS_RATE, JudgeMinimums, RunSettings, SkillMinimums, Suite
from agentv.model.values.formatting import cut, timestamp
from agentv.model.values.values import Json, JsonObject
from agentv.store.files.directory import PreviousRun
from agentv.store.files.encoding import to_document
from agentv.store.files.whole_file import make_private, new_private, open_private
from agentv.user_code.files import agentv_home
from agentv.version import __version__

LONGEST_PROMPT = 20_000
"""Maximum characters of a prompt that are recorded; a longer one is cut, with its length at the end."""


def record_of(prepared: Prepared, run_id: str, before: PreviousRun, seed: int | None = None) -> dict[str, Json]:
    """Return the content of `run.json`: settings and plan of a run, without secrets.

    Args:
        prepared: the plan.
        run_id: of the run.
        before: earlier processes of the run, whose sources of answers stay recorded.
        seed: of the order in which cases are drawn for `--against`, if they are.
    """
    cases, trials = prepared.counts
    now = timestamp(datetime.now(UTC))
    has_workspaces = prepared.settings.regrade is None and any(suite.workspaces for suite in prepared.suites)
    return {
        "run_id": run_id,
        "started": before.started or now,
        "resumed": now if before.processes else None,
        "processes": before.processes + 1,
        "duration_before_ms": before.duration_ms,
        "agentv": __version__,
        "python": platform.python_version(),
        "platform": platform_name(),
        "git_commit": checked_out_commit(root_of(prepared.suites)),
        "planned": {"cases": cases, "trials": trials},
        "partial": to_builtins(partial_of(prepared)),
        "settings": _settings_record(prepared, before.settings, seed),
        "suites": [_suite_record(suite, root_of(prepared.suites)) for suite in prepared.suites],
        **({"sandboxes": list[Json](sandboxes_of(prepared.suites))} if has_workspaces else {}),
        **({"agent_versions": dict(before.agent_versions)} if before.agent_versions else {}),
    }


def platform_name() -> str:
    """Return `platform.platform()`, computed on Linux without its call of `uname -p`."""
    if sys.platform != "linux":
        return platform.platform()
    system, library = os.uname(), "".join(platform.libc_ver())
    return "-".join((system.sysname, system.release, system.machine, *(("with", library) if library else ())))


def with_agent_versions(record: JsonObject, versions: Mapping[str, Iterable[str]]) -> JsonObject | None:
    """Return `run.json` with newly reported agent versions added, or None if none exist.

    Args:
        record: `run.json` as written when the run began.
        versions: target name → versions reported in this process.
    """
    before = record.get("agent_versions")
    known: dict[str, set[str]] = {}
    for name, found in (before or {}).items() if isinstance(before, dict) else ():
        known[name] = {one for one in found if isinstance(one, str)} if isinstance(found, list) else set()
    for name, reported in versions.items():
        known.setdefault(name, set()).update(reported)
    merged: dict[str, Json] = {name: sorted(known[name]) for name in sorted(known)}
    return None if merged == (before or {}) else {**record, "agent_versions": merged}


def _settings_record(prepared: Prepared, before: JsonObject, seed: int | None) -> dict[str, Json]:
    settings = prepared.settings
    choice: dict[str, Json] = {name: to_builtins(getattr(settings, name)) for name in resumed_settings()}
    if seed is not None:
        choice["seed"] = seed
    given: dict[str, Json] = {
        "watched": settings.watched is not None,
        "tests_from": settings.tests_from,
        "variables": dict(settings.variables),
        "env_file": settings.env_file,
        "allow_unchecked": settings.allow_unchecked,
        "allow_outside": settings.allow_outside,
        "trust_data": settings.trust_data,
        "sandbox": settings.sandbox,
        "keep_workspaces": settings.keep_workspaces,
        "workspace_path": settings.workspace_path,
    }
    record = {
        "paths": list(settings.paths),
        "targets": list(settings.requested_targets),
        "judge": settings.requested_judge,
        "workers": workers_of(prepared),
        "executor": settings.executor,
        "timeout_s": settings.timeout_s,
        **choice,
        **{name: value for name, value in given.items() if value},
        "regrade": settings.regrade or before.get("regrade"),
        "replay": settings.replay or before.get("replay"),
        "rerun": "failed" if "failed" in (settings.rerun, before.get("rerun")) else settings.rerun,
        "cache": caches(settings, prepared.suites) or bool(before.get("cache")),
    }
    if settings.failed is not None:  # so that the run can be resumed
        from agentv.app.planning.last_failed import as_recorded

        record["last_failed"] = as_recorded(settings.failed, root_of(prepared.suites))
    return record


def partial_of(prepared: Prepared) -> PartialRun | None:
    """Return which part of the suites runs, or None if all cases run with all prompts and variants."""
    settings = prepared.settings
    (cases, trials), (of, of_trials) = prepared.counts, prepared.plan.whole.counts()
    if trials >= of_trials:
        return None
    from agentv.app.planning.resume import SELECTION_FLAGS

    why = [
        flag.removeprefix("--") for name, flag in SELECTION_FLAGS.items() if name != "seed" and getattr(settings, name)
    ]
    if settings.failed is not None:
        why.append("watch" if settings.watched is not None else "last-failed")
    return PartialRun(cases, of, tuple(why), trials, of_trials)


class _Gates(Struct, omit_defaults=True):
    """Gates of a suite, recorded so that they can be decided when shards are merged."""

    corrected: float | None = None
    judge: JudgeMinimums | None = None
    activation: SkillMinimums | None = None


def gated_suite(record: JsonObject) -> Suite:
    """Return a suite with the name and the gates in `run.json`."""
    found = convert(record.get("gates") or {}, _Gates)
    run = RunSettings(gate=None if found.corrected is None else "corrected", min_pass_rate=found.corrected)
    return Suite(str(record["name"]), (), run=run, judge_minimums=found.judge, skill_minimums=found.activation)


def _suite_record(suite: Suite, root: str) -> dict[str, Json]:
    minimum = MIN_PASS_RATE if suite.run.min_pass_rate is None else suite.run.min_pass_rate
    gates = _Gates(minimum if suite.run.gate is not None else None, suite.judge_minimums, suite.skill_minimums)
    required: Json = to_builtins(gates)
    facts = ({"name": one.name, "sha256": one.sha256, "ref": one.ref} for one in suite.variants)
    variants: list[Json] = [{key: value for key, value in one.items() if value is not None} for one in facts]
    return {
        "name": suite.name,
        "path": suite.path.removeprefix(f"{root}/"),
        "metadata": dict(suite.metadata),
        "tags": list(suite.tags),
        "targets": [{"name": target.name, **target.public} for target in suite.targets],
        "prompts": [
            {"id": identity, "label": label, "text": cut(suite.prompt_texts.get(identity, ""), LONGEST_PROMPT)}
            for identity, label in suite.prompts.items()
        ],
        **({"variants": variants} if variants else {}),
        **({"gates": required} if required else {}),
        "judge": suite.judge.name if suite.judge else None,
        "default_judge": suite.default_judge.name if suite.default_judge else None,
        "files": {path.removeprefix(f"{root}/"): digest for path, digest in suite.files.items()},
    }


def checked_out_commit(root: str) -> str | None:
    """Return the checked-out commit, read from `.git`, as starting git would take longer than a small run."""
    git = Path(root) / ".git"
    try:
        if git.is_file():  # of a linked worktree: `gitdir: PATH`
            git = git.parent / git.read_text(encoding="utf-8").strip().removeprefix("gitdir: ")
            shared = git / (git / "commondir").read_text(encoding="utf-8").strip()
        else:
            shared = git
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        loose = shared / name
        if loose.is_file():
            return loose.read_text(encoding="utf-8").strip()
        packed = (shared / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)
    except (OSError, UnicodeDecodeError):
        return None


SIGNATURE = "signature"
"""Key of the signature in `run.json`."""

_KEY_FILE = "run-signing-key"
_KEY_BYTES = 32
_SIGNED = ("run_id", "settings", "suites")


def signature_of(record: Mapping[str, Json], root: str, env: Mapping[str, str] = os.environ) -> str | None:
    """Return the signature of a run that starts now, or None if no signing key can be stored.

    Args:
        record: content of its `run.json`.
        root: of the project's repository.
        env: environment of this process, which can set agentv's home.
    """
    try:
        return _sign(record, root, _key(agentv_home(env) / _KEY_FILE))
    except (OSError, StoreError, RuntimeError):  # runs work without a home directory
        return None


def is_signed_here(record: JsonObject, root: str, env: Mapping[str, str] = os.environ) -> bool:
    """Whether this user started a run on this machine in this project."""
    given = record.get(SIGNATURE)
    if not isinstance(given, str) or not given.isascii():
        return False
    try:
        key = _read_key(agentv_home(env) / _KEY_FILE)
    except (OSError, StoreError, RuntimeError):
        return False
    return key is not None and hmac.compare_digest(given, _sign(record, root, key))


def _sign(record: Mapping[str, Json], root: str, key: bytes) -> str:
    signed = {"root": os.path.realpath(root), **{name: record.get(name) for name in _SIGNED}}
    plain = json.loads(to_document(signed))  # normalized, as it will be when it is read again
    return hmac.new(key, json.dumps(plain, sort_keys=True).encode(), "sha256").hexdigest()


def _key(path: Path) -> bytes:
    """Return the key, created on first use. Two processes that create it concurrently get the same one."""
    found = _read_key(path)
    if found is not None:
        return found
    make_private(path.parent)
    from secrets import token_bytes, token_hex  # used once per machine

    temporary = path.with_name(f".{_KEY_FILE}.{token_hex(8)}")
    try:
        with os.fdopen(new_private(temporary), "wb") as file:
            file.write(token_bytes(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    found = _read_key(path)
    if found is None:
        raise StoreError(f"cannot use {path}: it is no key of this user alone")
    return found


def _read_key(path: Path) -> bytes | None:
    """Return the key, or None if it is missing or others can read it."""
    try:
        descriptor = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        key = file.read(_KEY_BYTES + 1)
    private = S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not S_IMODE(status.st_mode) & 0o077
    return key if private and len(key) == _KEY_BYTES else None
