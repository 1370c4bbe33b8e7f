"""One attempt to sign in at a provider, which only the browser that began it can end."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from secrets import compare_digest, token_urlsafe
from urllib.parse import quote, unquote

from msgspec import Struct

_OWN_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\\\x7f]*")
_LONGEST_PATH = 800


class Attempt(Struct, frozen=True):
    """An attempt. The browser has it in a cookie; state, nonce and code verifier follow from its secret.

    Attributes:
        secret: 256 random bits.
        target: path of this server that is opened afterwards.
    """

    secret: str
    target: str

    @classmethod
    def begin(cls, target: str) -> Attempt:
        """A new attempt."""
        return cls(token_urlsafe(32), own_path(target))

    @classmethod
    def of_cookie(cls, text: str) -> Attempt | None:
        """What a cookie holds; None: no attempt."""
        secret, found, target = text.partition(".")
        return cls(secret, own_path(unquote(target))) if found and len(secret) == 43 else None

    @property
    def cookie(self) -> str:
        """The attempt as a cookie holds it."""
        return f"{self.secret}.{quote(self.target, safe='')}"

    @property
    def state(self) -> str:
        """Comes back with the answer of the provider, and shows that it belongs to this browser."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """Comes back in the ID token, and shows that it was made for this attempt."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """Shows the provider that who sends the code began the attempt (PKCE)."""
        return self._derived("verifier")

    def began(self, state: str) -> bool:
        """Whether an answer with this state is the answer to this attempt."""
        return compare_digest(state.encode(errors="replace"), self.state.encode())

    def _derived(self, purpose: str) -> str:
        digest = sha256(f"agentv {purpose} {self.secret}".encode(errors="replace")).digest()
        return urlsafe_b64encode(digest).rstrip(b"=").decode()


def own_path(text: str) -> str:
    """A path of this server, as it is; `/` for all that would lead elsewhere."""
    return text if len(text) <= _LONGEST_PATH and _OWN_PATH.fullmatch(text) else "/"
