"""The keys with which a provider signs, and what was signed with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry, extract_compact

from agentv.extensions.team.server.openid.requesting import OpenIdError

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures with a key that only the provider has, so without `none` and the HS family."""

_TYPES: Mapping[str, type[RSAKey | ECKey]] = {"RSA": RSAKey, "EC": ECKey}
_KEEP_S = 3600.0
_AGAIN_S = 30.0
"""Seconds between two requests for the keys because of an unknown key id, which anybody can send."""

Key = RSAKey | ECKey


class SigningKeys:
    """The keys of a provider, which are fetched again when they are old, or when one is missing.

    Args:
        fetch: the provider's key set.
        clock: seconds that only grow.
        holding: holds a lock for as long as a block; it may give up waiting for it.
    """

    def __init__(
        self,
        fetch: Callable[[], Mapping[str, Any]],
        clock: Callable[[], float] = time.monotonic,
        holding: Callable[[Lock], AbstractContextManager[object]] = lambda lock: lock,
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._holding = holding
        self._lock = Lock()
        self._keys: list[Key] = []
        self._fetched: float | None = None

    def claims(self, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header and the claims of a signed token. Its signature was verified, and nothing else.

        Raises:
            OpenIdError: it was not signed by the provider.
            ProviderUnavailableError: the keys cannot be fetched.
        """
        try:
            header = extract_compact(text.encode()).headers()
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            raise OpenIdError("the ID token of the OpenID provider cannot be read") from error
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS:
            raise OpenIdError(f"the ID token is signed with an algorithm that is not accepted: {algorithm!r:.40}")
        for key in self._candidates(header):
            try:
                found = jwt.decode(text, key, registry=JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False))
            except (JoseError, ValueError, TypeError):
                continue
            return found.header, found.claims
        raise OpenIdError("the ID token is not signed by the OpenID provider")

    def _candidates(self, header: Mapping[str, Any]) -> list[Key]:
        with self._holding(self._lock):
            age = None if self._fetched is None else self._clock() - self._fetched
            if age is None or age > _KEEP_S:
                self._refresh()
            found = [key for key in self._keys if _fits(key, header)]
            if not found and age is not None and _AGAIN_S < age <= _KEEP_S:
                self._refresh()
                found = [key for key in self._keys if _fits(key, header)]
        return found

    def _refresh(self) -> None:
        self._keys = list(_imported(self._fetch()))
        self._fetched = self._clock()


def _imported(key_set: Mapping[str, Any]) -> Iterator[Key]:
    """The public keys of a set that sign; a provider may have others, also of kinds that nobody knows yet."""
    given = key_set.get("keys")
    for one in given if isinstance(given, list) else []:
        kind = _TYPES.get(str(one.get("kty"))) if isinstance(one, dict) else None
        if kind is None or one.get("use", "sig") != "sig":
            continue
        try:
            yield kind.import_key(one)
        except (JoseError, ValueError, TypeError, KeyError):
            continue


def _fits(key: Key, header: Mapping[str, Any]) -> bool:
    kid, alg = header.get("kid"), str(header["alg"])
    same_kind = (key.key_type == "EC") == alg.startswith("ES")
    return same_kind and key.get("alg") in (None, alg) and (kid is None or key.kid == kid)
