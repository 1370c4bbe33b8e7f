"""A client of one OpenID provider: authorization code with PKCE, and a verified ID token."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any
from urllib.parse import quote_plus, urlsplit

from authlib.common.urls import url_encode
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc.errors import JoseError
from msgspec import Struct

from agentv.errors import UsageError
from agentv.extensions.team.server.openid.attempt import Attempt
from agentv.extensions.team.server.openid.requesting import (
    SIGN_IN_S,
    OpenIdError,
    ProviderRequests,
    ProviderUnavailableError,
)
from agentv.extensions.team.server.openid.signing_keys import SigningKeys
from agentv.extensions.team.store.members import Person, email_in_lower_case

LEEWAY_S = 60
"""Seconds that the clocks of this server and of the provider may differ."""

_KEEP_S = 3600.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Metadata(Struct, frozen=True):
    """What a provider says of itself."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _Tokens(Struct, frozen=True):
    id_token: str
    access_token: str = ""


class ClientSettings(Struct, frozen=True):
    """How a provider knows this server.

    Attributes:
        issuer: address of the provider, exactly as it names itself.
        secret: empty: the provider knows the server as a public client.
    """

    issuer: str
    client_id: str
    secret: str = ""


class OpenIdProvider:
    """A provider at which people sign in.

    Args:
        settings: how it knows this server.
        clock: the time, in seconds since 1970.
        elapsed: seconds that only grow.
        sign_in_s: seconds that each of `address` and `person` may take.

    Raises:
        UsageError: the issuer is no address of a provider.
    """

    def __init__(
        self,
        settings: ClientSettings,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
        sign_in_s: float = SIGN_IN_S,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._elapsed = elapsed
        if not _is_safe(settings.issuer) or "?" in settings.issuer or "#" in settings.issuer:
            raise UsageError(
                "the OpenID issuer must be an https:// address without a query",
                "for example --oidc-issuer https://accounts.example.org",
            )
        self._requests = ProviderRequests(sign_in_s=sign_in_s)
        self._lock = Lock()
        self._metadata: tuple[float, Metadata] | None = None
        self._keys = SigningKeys(
            lambda: self._requests.get(self.metadata().jwks_uri, dict[str, Any]), elapsed, self._requests.holding
        )

    @property
    def issuer(self) -> str:
        """The address of the provider."""
        return self._settings.issuer

    def metadata(self) -> Metadata:
        """What the provider says of itself, not older than an hour.

        Raises:
            ProviderUnavailableError: it cannot be reached, or is another one.
        """
        with self._requests.holding(self._lock):
            if self._metadata is None or self._elapsed() - self._metadata[0] > _KEEP_S:
                address = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
                self._metadata = (self._elapsed(), self._checked(self._requests.get(address, Metadata)))
            return self._metadata[1]

    def address(self, attempt: Attempt, redirect: str) -> str:
        """Where the browser goes to sign in.

        Raises:
            ProviderUnavailableError: the provider cannot be reached.
        """
        with self._requests.sign_in():
            endpoint = self.metadata().authorization_endpoint
        return str(
            prepare_grant_uri(
                endpoint,
                self._settings.client_id,
                "code",
                redirect,
                "openid email",
                attempt.state,
                nonce=attempt.nonce,
                code_challenge=create_s256_code_challenge(attempt.verifier),
                code_challenge_method="S256",
            )
        )

    def person(self, attempt: Attempt, answer: Mapping[str, str], redirect: str) -> Person:
        """Who has signed in.

        Args:
            attempt: that this browser began.
            answer: parameters with which the provider sent the browser back; their state was checked.
            redirect: as it was given to `address`.

        Raises:
            OpenIdError: nobody has, or the answer is not valid.
            ProviderUnavailableError: the provider cannot be reached.
        """
        with self._requests.sign_in():
            return self._signed_in(attempt, answer, redirect)

    def _signed_in(self, attempt: Attempt, answer: Mapping[str, str], redirect: str) -> Person:
        metadata = self.metadata()
        issuer = answer.get("iss")
        if issuer != self.issuer and (issuer is not None or metadata.authorization_response_iss_parameter_supported):
            raise OpenIdError("the answer comes from another OpenID provider")
        if "error" in answer:
            raise OpenIdError(f"the OpenID provider did not sign you in: {_word(answer['error'])}")
        if not answer.get("code"):
            raise OpenIdError("the answer of the OpenID provider has no code")
        tokens = self._exchanged(metadata, answer["code"], attempt, redirect)
        claims = self._verified(tokens, attempt)
        if "email" not in claims and metadata.userinfo_endpoint and tokens.access_token:
            claims = {**claims, **self._user_info(metadata.userinfo_endpoint, tokens.access_token, claims["sub"])}
        return self._person(claims)

    def _checked(self, found: Metadata) -> Metadata:
        if found.issuer != self.issuer:
            raise ProviderUnavailableError(f"the OpenID provider names itself '{found.issuer}', not '{self.issuer}'")
        used = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri, found.userinfo_endpoint)
        for address in filter(None, used):
            if not _is_safe(address):
                raise ProviderUnavailableError(f"the OpenID provider names an address without https: {address}")
        return found

    def _exchanged(self, metadata: Metadata, code: str, attempt: Attempt, redirect: str) -> _Tokens:
        form = url_encode(
            [
                ("grant_type", "authorization_code"),
                ("code", code),
                ("redirect_uri", redirect),
                ("code_verifier", attempt.verifier),
            ]
        )
        client_id, secret = self._settings.client_id, self._settings.secret
        method = _authentication(secret, metadata.token_endpoint_auth_methods_supported)
        if method == "client_secret_basic":  # which takes both in the encoding of forms
            client_id, secret = quote_plus(client_id), quote_plus(secret)
        client = ClientAuth(client_id, secret, method)
        address, headers, body = client.prepare("POST", metadata.token_endpoint, {}, form)
        return self._requests.post(address, body, headers, _Tokens)

    def _verified(self, tokens: _Tokens, attempt: Attempt) -> dict[str, Any]:
        header, claims = self._keys.claims(tokens.id_token)
        options: dict[str, Any] = {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": self._settings.client_id},
        }
        given = {
            "nonce": attempt.nonce,
            "client_id": self._settings.client_id,
            "access_token": tokens.access_token,
        }
        token = CodeIDToken(claims, header, options, given)
        try:
            token.validate(now=int(self._clock()), leeway=LEEWAY_S)
        except (JoseError, ValueError, TypeError, AttributeError) as error:
            raise OpenIdError(f"the ID token of the OpenID provider is not valid: {_word(str(error))}") from error
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
            raise OpenIdError("the ID token of the OpenID provider has no usable subject")
        return claims

    def _user_info(self, address: str, access_token: str, subject: str) -> dict[str, Any]:
        """What the provider says of the person beside the ID token: many give the email address only here."""
        found = self._requests.get(address, dict[str, Any], {"Authorization": f"Bearer {access_token}"})
        if found.get("sub") != subject:
            raise OpenIdError("the OpenID provider gave the data of another person")
        return {name: found[name] for name in ("email", "email_verified") if name in found}

    def _person(self, claims: Mapping[str, Any]) -> Person:
        email, verified = claims.get("email"), claims.get("email_verified")
        known = email_in_lower_case(email) if isinstance(email, str) and verified is True else None
        return Person(self.issuer, claims["sub"], known or "")


def _authentication(secret: str, supported: tuple[str, ...]) -> str:
    """How this server says who it is."""
    if not secret:
        return "none"
    basic = "client_secret_basic"
    return basic if basic in supported or "client_secret_post" not in supported else "client_secret_post"


def _is_safe(address: str) -> bool:
    """Whether nobody between here and there can read and change what is sent."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))


def _word(text: str) -> str:
    """Texts of others, which a page shows: short, and of one line."""
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text[:100])
