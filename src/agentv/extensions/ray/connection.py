"""The cluster itself: joined where one runs, else started on this machine (Ray's `init`)."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from agentv.errors import UsageError
from agentv.registry.extras import install_hint

ADDRESS = "RAY_ADDRESS"

_STORE_BYTES = 200_000_000
"""Of the object store of a cluster that is started here: an answer is at most 10 MB."""


def check_installed() -> None:
    """Refuse to go on without Ray.

    Raises:
        UsageError: it is not installed.
    """
    if find_spec("ray") is None:
        raise UsageError("--executor ray requires the package ray, which is not installed", install_hint("ray"))


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """The `ray` module, connected; let go of at the end. A program that has connected itself stays connected.

    Args:
        address: of a cluster; None: one that runs on this machine, else a new one for this run alone.

    Raises:
        UsageError: no cluster can be reached or started.
    """
    check_installed()
    # agentv sends nothing to anybody who was not named, and a cluster of its own does not either
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of what it will do one day
    import ray

    if ray.is_initialized():
        yield ray
        return
    with _own_signals():
        _connect(ray, address)
    try:
        yield ray
    finally:
        with _own_signals():
            ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    if address is not None and address.startswith("ray://"):
        hint = f"run agentv on a machine of the cluster, and set {ADDRESS} to auto"
        raise UsageError(f"{ADDRESS} is {address}: agentv does not send trials through a Ray client", hint)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": False}
    try:
        try:
            ray.init(address=address or "auto", **quiet)
        except ConnectionError:
            if address is not None:
                raise
            ray.init(address="local", object_store_memory=_STORE_BYTES, **quiet)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, OSError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise _no_cluster(address, why) from error
    _silence(ray)


def _no_cluster(address: str | None, why: str) -> UsageError:
    where = f"at {address}" if address else "on this machine"
    return UsageError(
        f"no Ray cluster {where}: {why}", f"set {ADDRESS} to use another one; `ray status` shows its state"
    )


def _silence(ray: Any) -> None:
    """Keep Ray from printing what its daemons log, among it twenty lines for each machine that is lost."""
    with suppress(AttributeError):
        ray._private.worker._worker_logs_enabled = False  # noqa: SLF001  # there is no public way


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes over SIGTERM, which ends a run in good order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)
