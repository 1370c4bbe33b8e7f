"""A client of an OpenID provider, using the authorization code flow with PKCE and verified ID tokens."""

from __future__ import annotations

import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from secrets import compare_digest, token_urlsafe
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

import httpx
import msgspec
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet, RSAKey
from joserfc.jws import JWSRegistry
from msgspec import Struct

from agentv.errors import UsageError
from agentv.extensions.team.people import Person, email_in_lower_case
from agentv.store.files.encoding import decodable

SECRET_VARIABLE = "AGENTV_OIDC_CLIENT_SECRET"  # noqa: S105  # the name of a variable

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Asymmetric signature algorithms, which need the provider's private key; `none` and the HS family are excluded."""

_LEEWAY_S = 60
"""Seconds by which the clocks of this server and of the provider may differ."""

_TIMEOUT_S = 5.0
SIGN_IN_S = 10.0
"""Seconds for all requests of one sign-in together."""

_KEY_TYPES: Mapping[str, type[RSAKey | ECKey]] = {"RSA": RSAKey, "EC": ECKey}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OWN_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\\\x7f]*")
_LONGEST_PATH = 800


class OpenIdError(Exception):
    """A person cannot be signed in. The message is shown to that person."""


class ProviderUnavailableError(OpenIdError):
    """The provider cannot be reached, or its response is invalid; the same request may succeed later."""


class Attempt(Struct, frozen=True):
    """An attempt to sign in, stored in a cookie. State, nonce and code verifier are derived from its secret.

    Attributes:
        secret: 256 random bits.
        target: path on this server to open afterwards.
    """

    secret: str
    target: str

    @classmethod
    def begin(cls, target: str) -> Attempt:
        """Create an attempt."""
        return cls(token_urlsafe(32), own_path(target))

    @classmethod
    def of_cookie(cls, text: str) -> Attempt | None:
        """Parse the value of a cookie; None if it is not valid."""
        secret, found, target = text.partition(".")
        return cls(secret, own_path(unquote(target))) if found and len(secret) == 43 else None

    @property
    def cookie(self) -> str:
        """The value of the cookie."""
        return f"{self.secret}.{quote(self.target, safe='')}"

    def matches(self, state: str) -> bool:
        """Whether a response with this state belongs to this attempt."""
        return compare_digest(state.encode(errors="replace"), self.derived("state").encode())

    def derived(self, purpose: str) -> str:
        """Return the state, the nonce or the code verifier (PKCE) of this attempt."""
        digest = sha256(f"agentv {purpose} {self.secret}".encode(errors="replace")).digest()
        return urlsafe_b64encode(digest).rstrip(b"=").decode()


def own_path(text: str) -> str:
    """Return a path unchanged if it leads to this server, otherwise `/`."""
    return text if len(text) <= _LONGEST_PATH and _OWN_PATH.fullmatch(text) else "/"


class Metadata(Struct, frozen=True):
    """Published metadata of a provider."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Tokens(Struct, frozen=True):
    id_token: str
    access_token: str = ""


class _KeySet(Struct, frozen=True):
    keys: list[Any]


class OpenIdProvider:
    """An OpenID provider at which people sign in.

    Args:
        issuer: URL of the provider, exactly as in its metadata.
        client_id: client id of this server at the provider.
        secret: client secret; empty for a public client.

    Raises:
        UsageError: the issuer is not a valid URL of a provider.
    """

    def __init__(self, issuer: str, client_id: str, secret: str = "") -> None:
        if not _is_safe(issuer) or "?" in issuer or "#" in issuer:
            hint = "for example --oidc-issuer https://accounts.example.org"
            raise UsageError("the OpenID issuer must be an https:// address without a query", hint)
        self.issuer = issuer
        self._client_id = client_id
        self._secret = secret
        self._client = httpx.AsyncClient(
            timeout=_TIMEOUT_S,
            headers={"Accept": "application/json"},
            limits=httpx.Limits(max_keepalive_connections=0),  # people sign in rarely
        )
        self._metadata: Metadata | None = None

    async def address(self, attempt: Attempt, redirect: str) -> str:
        """Return the URL that the browser must open to sign in.

        Raises:
            ProviderUnavailableError: the provider cannot be reached.
        """
        metadata = await self._current_metadata()
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": redirect,
            "scope": "openid email",
            "state": attempt.derived("state"),
            "nonce": attempt.derived("nonce"),
            "code_challenge": create_s256_code_challenge(attempt.derived("verifier")),
            "code_challenge_method": "S256",
        }
        return str(httpx.URL(metadata.authorization_endpoint).copy_merge_params(query))

    async def person(self, attempt: Attempt, answer: Mapping[str, str], redirect: str) -> Person:
        """Return the person who has signed in.

        Args:
            attempt: the attempt that this browser began.
            answer: query parameters of the provider's redirect; the caller has checked their state.
            redirect: the redirect URI passed to `address`.

        Raises:
            OpenIdError: sign-in failed, or the response is not valid.
            ProviderUnavailableError: the provider cannot be reached.
        """
        metadata = await self._current_metadata()
        if "error" in answer:
            raise OpenIdError(f"the OpenID provider did not sign you in: {_shown(answer['error'])}")
        if not answer.get("code"):
            raise OpenIdError("the answer of the OpenID provider has no code")
        tokens = await self._exchange_code(metadata, answer["code"], attempt, redirect)
        claims = await self._verified_claims(metadata, tokens, attempt)
        if "email" not in claims and metadata.userinfo_endpoint and tokens.access_token:
            headers = {"Authorization": f"Bearer {tokens.access_token}"}
            info = await self._get(metadata.userinfo_endpoint, dict[str, Any], headers)
            if info.get("sub") != claims["sub"]:
                raise OpenIdError("the OpenID provider gave the data of another person")
            claims = {**claims, **{name: info.get(name) for name in ("email", "email_verified")}}
        email, verified = claims.get("email"), claims.get("email_verified")
        known = email_in_lower_case(email) if isinstance(email, str) and verified is True else None
        return Person(self.issuer, claims["sub"], known or "")

    async def _current_metadata(self) -> Metadata:
        """Return the provider's metadata, fetched at the first call."""
        if self._metadata is not None:
            return self._metadata
        found: Metadata = await self._get(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration", Metadata)
        if found.issuer != self.issuer:
            raise ProviderUnavailableError(f"the OpenID provider names itself '{found.issuer}', not '{self.issuer}'")
        used = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri, found.userinfo_endpoint)
        for address in filter(None, used):
            if not _is_safe(address):
                raise ProviderUnavailableError(f"the OpenID provider names an address without https: {address}")
        self._metadata = found
        return found

    async def _exchange_code(self, metadata: Metadata, code: str, attempt: Attempt, redirect: str) -> _Tokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "code_verifier": attempt.derived("verifier"),
        }
        auth, supported = None, metadata.token_endpoint_auth_methods_supported
        if not self._secret:
            form["client_id"] = self._client_id
        elif "client_secret_post" in supported and "client_secret_basic" not in supported:
            form |= {"client_id": self._client_id, "client_secret": self._secret}
        else:  # HTTP Basic, with both values form-encoded (RFC 6749)
            auth = (quote_plus(self._client_id), quote_plus(self._secret))
        address = metadata.token_endpoint
        status, answer = await self._request("POST", address, data=form, auth=auth)
        if status in (400, 401, 403):
            reported: Any = None  # an OAuth error code, such as `invalid_grant`
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
                reported = msgspec.json.decode(answer)["error"]
            reason = _shown(reported) if reported and isinstance(reported, str) else status
            raise OpenIdError(f"the OpenID provider refused the sign-in: {reason}")
        tokens: _Tokens = _decoded(address, status, answer, _Tokens)
        return tokens

    async def _verified_claims(self, metadata: Metadata, tokens: _Tokens, attempt: Attempt) -> dict[str, Any]:
        """Verify the ID token of an attempt, and return its claims."""
        published: _KeySet = await self._get(metadata.jwks_uri, _KeySet)
        usable: list[Any] = []
        for one in published.keys:  # skip keys of unknown types (RFC 7517)
            with suppress(JoseError, ValueError, TypeError, KeyError, AttributeError):
                usable.append(_KEY_TYPES[one["kty"]].import_key(one))
        registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        try:
            token = jwt.decode(tokens.id_token, KeySet(usable), registry=registry)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            message = "the ID token is not signed by the OpenID provider with a key that it publishes"
            raise OpenIdError(message) from error
        claims = token.claims
        options: dict[str, Any] = {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": self._client_id},
        }
        nonce = attempt.derived("nonce")
        given = {"nonce": nonce, "client_id": self._client_id, "access_token": tokens.access_token}
        try:
            CodeIDToken(claims, token.header, options, given).validate(now=int(time.time()), leeway=_LEEWAY_S)
        except (JoseError, ValueError, TypeError, AttributeError) as error:
            raise OpenIdError(f"the ID token of the OpenID provider is not valid: {_shown(str(error))}") from error
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
            raise OpenIdError("the ID token of the OpenID provider has no usable subject")
        return claims

    async def _get(self, address: str, into: Any, headers: Mapping[str, str] | None = None) -> Any:
        return _decoded(address, *await self._request("GET", address, headers=headers), into)

    async def _request(self, method: str, address: str, **given: Any) -> tuple[int, bytes]:
        try:
            response = await self._client.request(method, address, **given)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = type(error).__name__ if isinstance(error, httpx.TimeoutException) else str(error)
            raise ProviderUnavailableError(f"the OpenID provider cannot be reached at {address}: {reason}") from error
        return response.status_code, response.content


def opened_provider(issuer: str | None, client_id: str | None, env: Mapping[str, str]) -> OpenIdProvider | None:
    """Create the provider from its options, or return None if people sign in with API tokens.

    Args:
        issuer: URL of the provider.
        client_id: client id of this server at the provider.
        env: environment with the client secret; without one, the server is a public client.

    Raises:
        UsageError: only one of issuer and client id is given, or the issuer is not a valid URL of a provider.
    """
    if issuer is None and client_id is None:
        return None
    if not issuer or not client_id:
        raise UsageError("sign-in with OpenID Connect needs two options", "give --oidc-issuer and --oidc-client-id")
    return OpenIdProvider(issuer, client_id, env.get(SECRET_VARIABLE, ""))


def _decoded(address: str, status: int, body: bytes, into: Any) -> Any:
    if status != 200:
        raise ProviderUnavailableError(f"the OpenID provider answered {status} at {address}")
    try:
        return msgspec.json.decode(body, type=decodable(into))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProviderUnavailableError(f"the OpenID provider's answer at {address} is not valid: {error}") from error


def _shown(text: str) -> str:
    """Return a text from the provider for display: short, on one line, in ASCII."""
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text[:100])


def _is_safe(address: str) -> bool:
    """Whether requests to an address are encrypted, or stay on this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))
