"""A client of one OpenID provider: authorization code with PKCE, and a verified ID token."""

from __future__ import annotations

import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from secrets import compare_digest, token_urlsafe
from threading import Thread
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

import httpx
import msgspec
from authlib.common.urls import url_encode
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry
from msgspec import Struct

from agentv.errors import UsageError
from agentv.extensions.team.store.members import Person, email_in_lower_case
from agentv.store.files.decoded_types import described

SECRET_VARIABLE = "AGENTV_OIDC_CLIENT_SECRET"  # noqa: S105  # the name of a variable

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures with a key that only the provider has, so without `none` and the HS family."""

_LEEWAY_S = 60
"""Seconds that the clocks of this server and of the provider may differ."""

_TIMEOUT_S = 5.0
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
    authorization_response_iss_parameter_supported: bool = False


class _Tokens(Struct, frozen=True):
    id_token: str
    access_token: str = ""


class _KeySet(Struct, frozen=True):
    keys: list[dict[str, Any]]


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
            raise UsageError(
                "the OpenID issuer must be an https:// address without a query",
                "for example --oidc-issuer https://accounts.example.org",
            )
        self.issuer = issuer
        self._client_id = client_id
        self._secret = secret
        self._client = httpx.Client(timeout=_TIMEOUT_S, headers={"Accept": "application/json"})

    def metadata(self) -> Metadata:
        """What the provider says of itself.

        Raises:
            ProviderUnavailableError: it cannot be reached, or is another one.
        """
        found: Metadata = self._get(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration", Metadata)
        if found.issuer != self.issuer:
            raise ProviderUnavailableError(f"the OpenID provider names itself '{found.issuer}', not '{self.issuer}'")
        used = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri, found.userinfo_endpoint)
        for address in filter(None, used):
            if not _is_safe(address):
                raise ProviderUnavailableError(f"the OpenID provider names an address without https: {address}")
        return found

    def address(self, attempt: Attempt, redirect: str) -> str:
        """Where the browser goes to sign in.

        Raises:
            ProviderUnavailableError: the provider cannot be reached.
        """
        return str(
            prepare_grant_uri(
                self.metadata().authorization_endpoint,
                self._client_id,
                "code",
                redirect,
                "openid email",
                attempt.derived("state"),
                nonce=attempt.derived("nonce"),
                code_challenge=create_s256_code_challenge(attempt.derived("verifier")),
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
        metadata = self.metadata()
        issuer = answer.get("iss")
        if issuer != self.issuer and (issuer is not None or metadata.authorization_response_iss_parameter_supported):
            raise OpenIdError("the answer comes from another OpenID provider")
        if "error" in answer:
            raise OpenIdError(f"the OpenID provider did not sign you in: {answer['error'][:100]}")
        if not answer.get("code"):
            raise OpenIdError("the answer of the OpenID provider has no code")
        tokens = self._exchanged(metadata, answer["code"], attempt, redirect)
        claims = self._verified(metadata, tokens, attempt)
        if "email" not in claims and metadata.userinfo_endpoint and tokens.access_token:
            headers = {"Authorization": f"Bearer {tokens.access_token}"}
            info = self._get(metadata.userinfo_endpoint, dict[str, Any], headers)
            if info.get("sub") != claims["sub"]:
                raise OpenIdError("the OpenID provider gave the data of another person")
            claims = {**claims, **{name: info.get(name) for name in ("email", "email_verified")}}
        email, verified = claims.get("email"), claims.get("email_verified")
        known = email_in_lower_case(email) if isinstance(email, str) and verified is True else None
        return Person(self.issuer, claims["sub"], known or "")

    def _exchanged(self, metadata: Metadata, code: str, attempt: Attempt, redirect: str) -> _Tokens:
        form = url_encode(
            [
                ("grant_type", "authorization_code"),
                ("code", code),
                ("redirect_uri", redirect),
                ("code_verifier", attempt.derived("verifier")),
            ]
        )
        client_id, secret, supported = self._client_id, self._secret, metadata.token_endpoint_auth_methods_supported
        method = "client_secret_basic" if secret else "none"
        if secret and method not in supported and "client_secret_post" in supported:
            method = "client_secret_post"
        if method == "client_secret_basic":  # which takes both in the encoding of forms
            client_id, secret = quote_plus(client_id), quote_plus(secret)
        client = ClientAuth(client_id, secret, method)
        address, headers, body = client.prepare("POST", metadata.token_endpoint, {}, form)
        headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        response = self._sent("POST", address, content=body, headers=headers)
        if response.status_code in (400, 401, 403):
            raise OpenIdError(f"the OpenID provider refused the sign-in: {response.text[:200]}")
        tokens: _Tokens = _decoded(response, _Tokens)
        return tokens

    def _verified(self, metadata: Metadata, tokens: _Tokens, attempt: Attempt) -> dict[str, Any]:
        """The claims of an ID token that the provider signed for this attempt."""
        published = self._get(metadata.jwks_uri, _KeySet).keys
        options: dict[str, Any] = {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": self._client_id},
        }
        given = {
            "nonce": attempt.derived("nonce"),
            "client_id": self._client_id,
            "access_token": tokens.access_token,
        }
        try:
            keys = KeySet.import_key_set({"keys": [one for one in published if one.get("kty") in ("RSA", "EC")]})
            found = jwt.decode(
                tokens.id_token, keys, registry=JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
            )
            token = CodeIDToken(found.claims, found.header, options, given)
            token.validate(now=int(time.time()), leeway=_LEEWAY_S)
        except (JoseError, ValueError, TypeError, AttributeError) as error:
            raise OpenIdError(f"the ID token of the OpenID provider is not valid: {str(error)[:100]}") from error
        subject = found.claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
            raise OpenIdError("the ID token of the OpenID provider has no usable subject")
        return found.claims

    def _get(self, address: str, into: Any, headers: Mapping[str, str] | None = None) -> Any:
        return _decoded(self._sent("GET", address, headers=headers), into)

    def _sent(self, method: str, address: str, **given: Any) -> httpx.Response:
        try:
            return self._client.request(method, address, **given)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = type(error).__name__ if isinstance(error, httpx.TimeoutException) else str(error)
            raise ProviderUnavailableError(f"the OpenID provider cannot be reached at {address}: {reason}") from error


def opened_provider(
    issuer: str | None, client_id: str | None, env: Mapping[str, str], problem: Callable[[str], None]
) -> OpenIdProvider | None:
    """The provider; None: people sign in with API tokens.

    Args:
        issuer: address of the provider.
        client_id: how it knows this server.
        env: has the client secret; without it, the provider must know the server as a public client.
        problem: called soon afterwards if the provider cannot be used at present.

    Raises:
        UsageError: only one of them is given, or the issuer is not the address of a provider.
    """
    if issuer is None and client_id is None:
        return None
    if not issuer or not client_id:
        raise UsageError("sign-in with OpenID Connect needs two options", "give --oidc-issuer and --oidc-client-id")
    found = OpenIdProvider(issuer, client_id, env.get(SECRET_VARIABLE, ""))

    def check() -> None:
        try:
            found.metadata()
        except OpenIdError as error:
            problem(str(error))

    Thread(target=check, name="agentv-openid", daemon=True).start()
    return found


def _decoded(response: httpx.Response, into: Any) -> Any:
    if response.status_code != 200:
        raise ProviderUnavailableError(f"the OpenID provider answered {response.status_code} at {response.url}")
    try:
        return msgspec.json.decode(response.content, type=described(into))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProviderUnavailableError(
            f"the OpenID provider's answer at {response.url} is not valid: {error}"
        ) from error


def _is_safe(address: str) -> bool:
    """Whether nobody between here and there can read and change what is sent."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))
