"""What the endpoints of a team's server share."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from anyio import CapacityLimiter

from agentv.extensions.team.store.database import Database
from agentv.extensions.team.store.members import Members, Sessions
from agentv.extensions.team.store.tokens import Tokens
from agentv.extensions.team.store.uploads import Uploads

if TYPE_CHECKING:
    from agentv.extensions.team.server.openid import OpenIdProvider

_FAILURES = 20
"""Wrong tokens of one address within `_WINDOW_S`, after which its requests are refused."""

_WINDOW_S = 60.0
_ADDRESSES = 10_000


_WRITERS = 16
"""Of 40 threads."""


class FailedSignIns:
    """Counts wrong tokens for each address, so that nobody tries many. Forgets those that tried longest ago."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._lock = Lock()

    def wait_s(self, address: str) -> float:
        """Seconds until requests of an address are taken again; 0: they are."""
        with self._lock:
            since, count = self._failures.get(address, (0.0, 0))
        left = since + _WINDOW_S - time.monotonic()
        return left if count >= _FAILURES and left > 0 else 0.0

    def add(self, address: str) -> None:
        """A request of an address had a wrong token."""
        with self._lock:
            since, count = self._failures.pop(address, (0.0, 0))
            moment = time.monotonic()
            self._failures[address] = (since, count + 1) if moment - since < _WINDOW_S else (moment, 1)
            while len(self._failures) > _ADDRESSES:
                self._failures.popitem(last=False)


class TeamState:
    """The state of a server.

    Args:
        database: shared with other servers.
        addresses: see below.
        openid: where people sign in; None: they sign in with an API token.
        proxies: see below.

    Attributes:
        addresses: under which people reach the server, such as `https://evals.example.org`.
        proxies: IP addresses or networks whose `X-Forwarded-For` says who sent a request.
        answered: requests by status, for the metrics.
        writers: threads that change something. Others stay for readers, who must not wait where writers do.
        copied: `time.time()` when the copies were last brought up to date; 0: never.
    """

    def __init__(
        self,
        database: Database,
        addresses: Sequence[str] = (),
        openid: OpenIdProvider | None = None,
        proxies: Sequence[str] = (),
    ) -> None:
        self.database = database
        self.addresses = tuple(addresses)
        self.openid = openid
        self.proxies = tuple(proxies)
        self.tokens = Tokens(database)
        self.members = Members(database)
        self.sessions = Sessions(database)
        self.uploads = Uploads(database)
        self.failed_sign_ins = FailedSignIns()
        self.answered: Counter[int] = Counter()
        self.writers = CapacityLimiter(_WRITERS)
        self.copied = 0.0
