"""An OpenID provider on loopback with real HTTP, real signatures and one person who consents to everything."""

import json
import time
from base64 import urlsafe_b64encode
from hashlib import sha256
from threading import Event
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from doubles.http_server import HttpServer, Reply, Request

CLIENT = "agentv-test"
SECRET = "a+b%c d"  # basic authentication must encode it


class OpenIdDouble(HttpServer):
    """A provider whose attributes may be changed between requests.

    Attributes:
        claims: replacements for claims of ID tokens; None omits a claim.
        info: response of the user info endpoint; None if it has no such endpoint.
        key: the signing key; the key set contains it only if it is in `keys`.
        header: replacements for header entries of ID tokens.
        down: every request gets 503.
        method: how clients authenticate.
        refusal: error with which the token endpoint refuses every code, if not None.
        answering: event that requests wait for.
    """

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.claims: dict[str, Any] = {}
        self.info: dict[str, Any] | None = None
        self.key: Any = RSAKey.generate_key(2048, {"kid": "first"})
        self.keys: list[Any] = [self.key]
        self.header: dict[str, Any] = {}
        self.down = False
        self.method = "client_secret_basic"
        self.refusal: Any = None
        self.answering = Event()
        self.answering.set()
        self.metadata: dict[str, Any] = {}
        self._codes: dict[str, dict[str, str]] = {}
        self.issuer = f"{self.url}/realm"

    def authorize(self, address: str) -> str:
        """Return the URL to which the provider redirects the browser after this authorization request."""
        query = dict(parse_qsl(urlsplit(address).query))
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = f"code{len(self._codes)}"
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state'], 'iss': self.issuer})}"

    def answer(self, request: Request) -> Reply:
        status, value = self._said(*request)
        return status, {}, (value if isinstance(value, str) else json.dumps(value)).encode()

    def _said(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        self.answering.wait(20)
        if self.down:
            return 503, "<h1>down</h1>"
        if (method, path) == ("GET", "/realm/.well-known/openid-configuration"):
            return 200, self._configuration()
        if (method, path) == ("GET", "/realm/keys"):
            return 200, {"keys": [one.as_dict(private=False) if hasattr(one, "kid") else one for one in self.keys]}
        if (method, path) == ("GET", "/realm/me"):
            return (200, self.info) if headers["authorization"] == "Bearer access" else (401, {})
        if (method, path) == ("POST", "/realm/token"):
            return self._token(headers, dict(parse_qsl(body.decode())))
        return 404, {}

    def _configuration(self) -> dict[str, Any]:
        at = self.issuer
        return {
            "issuer": at,
            "authorization_endpoint": f"{at}/authorize",
            "token_endpoint": f"{at}/token",
            "jwks_uri": f"{at}/keys",
            "token_endpoint_auth_methods_supported": [self.method],
            "id_token_signing_alg_values_supported": ["RS256", "none", "HS256"],
            **({} if self.info is None else {"userinfo_endpoint": f"{at}/me"}),
            **self.metadata,
        }

    def _token(self, headers: Any, form: dict[str, str]) -> tuple[int, Any]:
        expected = {
            "client_secret_basic": ("Basic " + _basic(f"{CLIENT}:{urlencode({'': SECRET})[1:]}"), None, None),
            "client_secret_post": (None, CLIENT, SECRET),
            "none": (None, CLIENT, None),
        }
        if (headers["authorization"], form.get("client_id"), form.get("client_secret")) != expected[self.method]:
            return 401, {"error": "invalid_client"}
        if self.refusal is not None:
            return 400, self.refusal
        begun = self._codes.pop(form["code"], None)
        challenge = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if begun is None or challenge != begun["code_challenge"] or form["redirect_uri"] != begun["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        self._codes[form["code"] + " used"] = begun
        return 200, {"access_token": "access", "token_type": "Bearer", "id_token": self.id_token(begun["nonce"])}

    def id_token(self, nonce: str) -> str:
        moment = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": "248289761001",
            "aud": CLIENT,
            "exp": moment + 300,
            "iat": moment,
            "nonce": nonce,
            "email": "ada@example.org",
            "email_verified": True,
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": "ES256" if isinstance(self.key, ECKey) else "RS256", "kid": self.key.kid, **self.header}
        if header["alg"] == "none":
            return ".".join([_encoded(header), _encoded(claims), ""])
        key = OctKey.import_key(SECRET * 8) if header["alg"] == "HS256" else self.key
        return jwt.encode({k: v for k, v in header.items() if v is not None}, claims, key, algorithms=[header["alg"]])


def _basic(text: str) -> str:
    from base64 import b64encode

    return b64encode(text.encode()).decode()


def _encoded(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
