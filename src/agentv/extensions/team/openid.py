"""A client of one OpenID provider: authorization code with PKCE, and a verified ID token."""

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
"""Signatures with a key that only the provider has, so without `none` and the HS family."""

_LEEWAY_S = 60
"""Seconds that the clocks of this server and of the provider may differ."""

_TIMEOUT_S = 5.0
SIGN_IN_S = 10.0
"""Seconds for all requests of one sign-in together."""

_KEY_TYPES: Mapping[str, type[RSAKey | ECKey]] = {"RSA": RSAKey, "EC": ECKey}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OWN_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\\\x7f]*")
_LONGEST_PATH = 800


class OpenIdError(Exception):
    """A person cannot be signed in. The message is for that person and for the administrator."""


class ProviderUnavailableError(OpenIdError):
    """The provider cannot be reached, or does not answer as it must; the same may succeed later."""


class Attempt(Struct, frozen=True):
    """An attempt to sign in. The browser has it in a cookie; state, nonce and code verifier follow from its secret.

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

    def began(self, state: str) -> bool:
        """Whether an answer with this state is the answer to this attempt."""
        return compare_digest(state.encode(errors="replace"), self.derived("state").encode())

    def derived(self, purpose: str) -> str:
        """The state, the nonce or the code verifier (PKCE) of this attempt."""
        digest = sha256(f"agentv {purpose} {self.secret}".encode(errors="replace")).digest()
        return urlsafe_b64encode(digest).rstrip(b"=").decode()


def own_path(text: str) -> str:
    """A path of this server, as it is; `/` for all that would lead elsewhere."""
    return text if len(text) <= _LONGEST_PATH and _OWN_PATH.fullmatch(text) else "/"


class Metadata(Struct, frozen=True):
    """What a provider says of itself."""

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
    """A provider at which people sign in.

    Args:
        issuer: address of the provider, exactly as it names itself.
        client_id: how the provider knows this server.
        secret: empty: the provider knows the server as a public client.

    Raises:
        UsageError: the issuer is not the address of a provider.
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
        """Where the browser goes to sign in.

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
        """Who has signed in.

        Args:
            attempt: that this browser began.
            answer: parameters with which the provider sent the browser back; their state was checked.
            redirect: as it was given to `address`.

        Raises:
            OpenIdError: nobody has, or the answer is not valid.
            ProviderUnavailableError: the provider cannot be reached.
        """
        metadata = await self._current_metadata()
        if "error" in answer:
            raise OpenIdError(f"the OpenID provider did not sign you in: {_shown(answer['error'])}")
        if not answer.get("code"):
            raise OpenIdError("the answer of the OpenID provider has no code")
        tokens = await self._exchanged(metadata, answer["code"], attempt, redirect)
        claims = await self._verified(metadata, tokens, attempt)
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
        """What the provider says of itself, fetched once."""
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

    async def _exchanged(self, metadata: Metadata, code: str, attempt: Attempt, redirect: str) -> _Tokens:
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
        else:  # which takes both in the encoding of forms
            auth = (quote_plus(self._client_id), quote_plus(self._secret))
        address = metadata.token_endpoint
        status, answer = await self._sent("POST", address, data=form, auth=auth)
        if status in (400, 401, 403):
            reported: Any = None  # of an OAuth error, such as `invalid_grant`
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
                reported = msgspec.json.decode(answer)["error"]
            reason = _shown(reported) if reported and isinstance(reported, str) else status
            raise OpenIdError(f"the OpenID provider refused the sign-in: {reason}")
        tokens: _Tokens = _decoded(address, status, answer, _Tokens)
        return tokens

    async def _verified(self, metadata: Metadata, tokens: _Tokens, attempt: Attempt) -> dict[str, Any]:
        """The claims of an ID token that the provider signed for this attempt."""
        published: _KeySet = await self._get(metadata.jwks_uri, _KeySet)
        usable: list[Any] = []
        for one in published.keys:  # others, of whatever kind, may stand beside those that can verify (RFC 7517)
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
        return _decoded(address, *await self._sent("GET", address, headers=headers), into)

    async def _sent(self, method: str, address: str, **given: Any) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        try:
            response = await self._client.request(method, address, **given)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = type(error).__name__ if isinstance(error, httpx.TimeoutException) else str(error)
            raise ProviderUnavailableError(f"the OpenID provider cannot be reached at {address}: {reason}") from error
        return response.status_code, response.content


def opened_provider(issuer: str | None, client_id: str | None, env: Mapping[str, str]) -> OpenIdProvider | None:
    """The provider; None: people sign in with API tokens.

    Args:
        issuer: address of the provider.
        client_id: how it knows this server.
        env: has the client secret; without it, the provider must know the server as a public client.

    Raises:
        UsageError: only one of them is given, or the issuer is not the address of a provider.
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
    """A text of the provider as a page may show it: short, on one line, in ASCII."""
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text[:100])


def _is_safe(address: str) -> bool:
    """Whether nobody between here and there can read and change what is sent."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))
