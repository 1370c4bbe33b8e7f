"""Keys that `extra` may not set: they would change the request or make the reply unreadable."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from agentv.model.values.values import Json
from agentv.registry.fields import Issue

_PENDING = {"stream": "set 'stream: true' on the target itself", "background": None}


def extra_issues(extra: Mapping[str, Json], own: Collection[str]) -> Iterator[Issue]:
    """What is wrong with the further keys of a request's body.

    Args:
        extra: as the author writes it.
        own: the keys that are filled from the case, or have a setting of their own.
    """
    for name, hint in _PENDING.items():
        if extra.get(name):
            message = f"'{name}' cannot be set here: agentv reads the answer from the response to its call"
            yield Issue(("extra", name), message, hint=hint)
    count = extra.get("n")
    if isinstance(count, int | float) and count > 1:
        hint = "to call several times, set repeat under run"
        yield Issue(("extra", "n"), f"'n' must be 1: only one answer is read, found {count}", hint=hint)
    for name in own:
        if name in extra:
            yield Issue(("extra", name), f"'{name}' cannot be set here: the target and the case set it")
