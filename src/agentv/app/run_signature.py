"""Who started a run: `run.json` has a signature, made with a key that only this user of this machine has.

A run that was copied, pulled or downloaded has none that is valid here. The signature covers what a command that runs
cases again takes from `run.json`: settings, files and names of targets; and the directory of the project, so that a
run of another project is not valid in this one.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE, S_ISREG

from agentv.errors import StoreError
from agentv.model.values.values import Json, JsonObject
from agentv.store.files.encoding import to_document
from agentv.store.files.private_files import make_private, new_private, open_private
from agentv.user_code.files import agentv_home

SIGNATURE = "signature"
"""The key of `run.json`."""

_KEY_FILE = "run-signing-key"
_KEY_BYTES = 32
_SIGNED = ("run_id", "settings", "suites")


def signature_of(record: Mapping[str, Json], root: str, env: Mapping[str, str] = os.environ) -> str | None:
    """The signature of a run that starts now; None: there is no place for a key.

    Args:
        record: of its `run.json`.
        root: of the project's repository.
        env: of this process; it can name another home of agentv.
    """
    try:
        return _signed(record, root, _key(agentv_home(env) / _KEY_FILE))
    except (OSError, StoreError, RuntimeError):  # a machine without a home runs all the same
        return None


def is_signed_here(record: JsonObject, root: str, env: Mapping[str, str] = os.environ) -> bool:
    """Whether this user started a run on this machine, in this project."""
    given = record.get(SIGNATURE)
    if not isinstance(given, str) or not given.isascii():
        return False
    try:
        key = _read_key(agentv_home(env) / _KEY_FILE)
    except (OSError, StoreError, RuntimeError):
        return False
    return key is not None and hmac.compare_digest(given, _signed(record, root, key))


def _signed(record: Mapping[str, Json], root: str, key: bytes) -> str:
    signed = {"root": os.path.realpath(root), **{name: record.get(name) for name in _SIGNED}}
    plain = json.loads(to_document(signed))  # as it will be read again, whatever the settings are made of
    return hmac.new(key, json.dumps(plain, sort_keys=True).encode(), "sha256").hexdigest()


def _key(path: Path) -> bytes:
    """The key, created on first use; two processes that create it at once get the same one."""
    found = _read_key(path)
    if found is not None:
        return found
    make_private(path.parent)
    from secrets import token_bytes, token_hex  # once a machine

    made = path.with_name(f".{_KEY_FILE}.{token_hex(8)}")
    try:
        with os.fdopen(new_private(made), "wb") as file:
            file.write(token_bytes(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(made, path)
    finally:
        made.unlink(missing_ok=True)
    found = _read_key(path)
    if found is None:
        raise StoreError(f"cannot use {path}: it is no key of this user alone")
    return found


def _read_key(path: Path) -> bytes | None:
    """The key, or None if it is missing or others could know it."""
    try:
        descriptor = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        key = file.read(_KEY_BYTES + 1)
    private = S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not S_IMODE(status.st_mode) & 0o077
    return key if private and len(key) == _KEY_BYTES else None
