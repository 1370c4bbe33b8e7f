"""Sign-in with a token and at an OpenID provider, and attacks on it, over real HTTP."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from joserfc.jwk import ECKey, OctKey, RSAKey
from starlette.testclient import TestClient

from agentv.errors import StoreError, UsageError
from agentv.extensions.team.database import DatabaseUnavailableError, audit_lines
from agentv.extensions.team.endpoints import TeamState
from agentv.extensions.team.openid import SECRET_VARIABLE, OpenIdProvider, opened_provider, own_path
from agentv.extensions.team.people import LONGEST, MemberName, Members, Sessions, member_name
from agentv.extensions.team.serving import team_application, trusted_proxies
from doubles.openid_provider import CLIENT, SECRET, OpenIdDouble
from doubles.team_servers import team_server_in

ADA = MemberName("ada@example.org")


@pytest.fixture
def provider():
    with OpenIdDouble() as found:
        yield found


@pytest.fixture
def openid(server, provider):
    """The server with this provider, where ada may read."""
    server.state.openid = OpenIdProvider(provider.issuer, CLIENT, SECRET)
    server.state.failed_sign_ins.__init__()
    server.state.members.add(ADA, "support", ("read",), "test")
    yield provider
    server.state.openid = None
    server.state.members.remove(ADA, None, "test")


@pytest.fixture
def browser(server):
    with Browser(server.root) as found:
        yield found


class Browser(httpx.Client):
    """A client with the headers of a browser."""

    def __init__(self, root):
        super().__init__(base_url=root, headers={"Origin": root})

    def projects(self):
        answer = self.get("/api/projects")
        return answer.json()["projects"] if answer.status_code == 200 else answer.status_code

    def begin(self, to="/"):
        answer = self.post("/sign-in/openid", json={"to": to})
        assert answer.status_code == 200, answer.text
        return answer.json()["location"]

    def csrf(self):
        return self.get("/sign-in").text.partition('name="agentv-token" content="')[2].partition('"')[0]

    def session(self):
        return next((value for name, value in self.cookies.items() if "session" in name), None)


def code(response):
    return response.status_code, response.json()["error"]["code"]


def test_a_token_is_exchanged_for_a_session_that_ends_with_either(server, browser):
    text, token = server.state.tokens.create("ada", "support", ("read",), None, "test")
    assert browser.projects() == 401
    assert browser.get("/sign-in", params={"to": "/projects/support/"}).status_code == 200
    answer = browser.post("/sign-in/token", json={"token": f" {text}\n", "to": "/projects/support/#/run/x"})
    assert answer.json() == {"to": "/projects/support/#/run/x"}
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"agentv-session-{urlsplit(server.root).port}=")
    assert text not in cookie
    assert all(f"; {word}" in cookie.lower() for word in ("httponly", "samesite=lax", "path=/"))
    assert browser.projects() == ["support"]
    stolen = dict(browser.cookies)
    assert code(browser.post("/sign-out", json={})) == (403, "wrong-token")
    assert browser.projects() == ["support"]
    assert browser.post("/sign-out", json={}, headers={"X-Agentv-Token": browser.csrf()}).json() == {"to": "/sign-in"}
    assert browser.session() is None
    browser.cookies.update(stolen)
    assert browser.projects() == 401  # the session ended on the server too
    assert browser.post("/sign-in/token", json={"token": text}).status_code == 200
    server.state.tokens.revoke(token.id, "test")
    assert browser.projects() == 401
    assert code(browser.post("/sign-in/token", json={"token": text})) == (401, "wrong-token")
    actions = [line.action for line in audit_lines(server.state.database, "support", limit=5)]
    assert actions[:4] == ["token revoked", "signed in", "signed out", "signed in"]


@pytest.mark.parametrize(("proxies", "status"), [((), 429), (("127.0.0.0/8",), 401)], ids=["none", "trusted"])
def test_wrong_tokens_of_one_sender_lock_out_no_other_behind_a_trusted_proxy(tmp_path, proxies, status):
    with team_server_in(tmp_path, proxies) as server, Browser(server.root) as browser:

        def tried(sender):
            answer = browser.post("/sign-in/token", json={"token": "agentv_x"}, headers={"X-Forwarded-For": sender})
            return answer.status_code

        assert [tried(f"198.51.100.{number}, 203.0.113.7") for number in range(21)] == [401] * 20 + [429]
        assert tried("203.0.113.7, 203.0.113.8") == status
    for wrong in ("*", "evals.example.org", "10.0.0.7/8"):
        with pytest.raises(UsageError, match="no IP address of a proxy"):
            trusted_proxies([wrong])


def test_tokens_that_cannot_read_or_come_from_elsewhere_begin_no_session(server, browser):
    text, _ = server.state.tokens.create("ada", "support", ("read",), None, "test")
    pusher, _ = server.state.tokens.create("ci", "support", ("push",), None, "test")
    assert code(browser.post("/sign-in/token", json={"token": pusher})) == (403, "missing-scope")
    for origin in ("https://evil.example", "null", None):
        headers = {} if origin is None else {"Origin": origin}
        with httpx.Client(base_url=server.root, headers=headers) as other:
            assert code(other.post("/sign-in/token", json={"token": text})) == (403, "wrong-origin")
            assert not other.cookies
    for body in (b"", b"[]", b'{"token": 1}', b'{"token": "x", "more": 1}', b"[" * 16_000):
        assert code(browser.post("/sign-in/token", content=body)) == (400, "bad-request"), body[:30]
    assert code(browser.post("/sign-in/token", content=b" " * 17_000)) == (413, "too-large")
    assert browser.session() is None


def test_a_session_of_the_attacker_or_of_another_server_is_not_gone_on_with(server, browser):
    text, _ = server.state.tokens.create("ada", "support", ("read",), None, "test")
    assert browser.post("/sign-in/token", json={"token": text}).status_code == 200
    planted = browser.session()
    assert browser.post("/sign-in/token", json={"token": text}).status_code == 200
    assert browser.session() != planted
    assert server.state.sessions.find(planted) is None
    name = next(iter(dict(browser.cookies)))
    with Browser(server.root) as other:
        other.cookies.set(name.replace("session-", "session-9"), browser.session())
        assert other.projects() == 401  # a cookie of the server at another port
        other.cookies.set(name, "x" * 43)
        assert other.projects() == 401
        assert other.get("/sign-in").status_code == 200


def test_cookies_are_bound_to_the_host_behind_tls(server, tmp_path):
    text, _ = server.state.tokens.create("ada", "support", ("read",), None, "test")
    own = "https://evals.example.org"
    application = team_application(TeamState(server.state.database, [own]), tmp_path)
    behind = TestClient(application, base_url=own, headers={"Origin": own})
    cookie = behind.post("/sign-in/token", json={"token": text}).headers["set-cookie"]
    assert cookie.startswith("__Host-agentv-session=")
    assert "; Secure" in cookie
    assert "domain" not in cookie.lower()
    assert behind.get("/api/projects").json() == {"projects": ["support"]}


def test_a_member_signs_in_at_the_provider_and_has_what_members_have_at_each_moment(server, openid, browser):
    location = browser.begin("/projects/support/#/run/x")
    assert dict(parse_qsl(urlsplit(location).query))["redirect_uri"] == f"{server.root}/sign-in/openid/callback"
    answer = browser.get(openid.authorize(location))
    assert (answer.status_code, answer.headers["location"]) == (303, "/projects/support/#/run/x")
    assert browser.projects() == ["support"]
    csrf = {"X-Agentv-Token": browser.csrf()}
    create = {"name": "ci", "scopes": ["push"]}
    assert code(browser.post("/projects/support/api/tokens", json=create, headers=csrf)) == (403, "missing-scope")
    server.state.members.add(ADA, "support", ("admin",), "test")
    assert browser.post("/projects/support/api/tokens", json=create, headers=csrf).status_code == 200
    assert code(browser.post("/projects/support/api/tokens", json=create)) == (403, "wrong-token")
    assert audit_lines(server.state.database, "support", limit=1)[0].actor == "ada@example.org"
    assert code(browser.post("/sign-in/token", json={"token": server.token("read")})) == (403, "openid-only")
    other = OpenIdProvider("https://other.example", CLIENT)
    server.state.openid, own = other, server.state.openid
    assert browser.projects() == 401  # sessions of the server's previous provider
    server.state.openid = own
    server.state.members.remove(ADA, None, "test")
    assert browser.projects() == 401
    assert browser.get("/sign-in").status_code == 200


def test_people_are_known_by_verified_ascii_addresses_or_by_subject(server, openid, browser):
    refused = [
        {"email_verified": False},
        {"email_verified": None},
        {"email_verified": "true"},
        {"email": None},
        {"email": ["ada@example.org"]},
        {"email": "ada@example.org\n"},
        {"email": "аda@example.org"},  # starts with a Cyrillic letter
        {"email": "ada@example.org.evil.example"},
        {"email": "ada@ex\u212ample.org".replace("\u212a", "\u00e5")},
        {"email": "eve@example.org"},
    ]
    for openid.claims in refused:
        answer = browser.get(openid.authorize(browser.begin()))
        assert (answer.status_code, "is not a member" in answer.text) == (403, True), openid.claims
        assert browser.projects() == 401, openid.claims
    openid.claims = {"email": "ADA@Example.ORG"}
    assert browser.get(openid.authorize(browser.begin())).status_code == 303
    server.state.members.remove(ADA, None, "test")
    openid.claims = {"email": None, "email_verified": None}
    server.state.members.add(member_name("248289761001", openid.issuer), None, ("read",), "test")
    assert browser.get(openid.authorize(browser.begin())).status_code == 303
    assert browser.projects() == ["support"]
    server.state.members.remove(member_name("248289761001", openid.issuer), None, "test")
    server.state.members.add(member_name("248289761001", "https://other.example"), None, ("read",), "test")
    assert browser.projects() == 401


def test_the_address_may_come_from_the_user_info_of_the_same_person(openid, browser):
    openid.claims = {"email": None, "email_verified": None}
    openid.info = {"sub": "another", "email": "ada@example.org", "email_verified": True}
    assert browser.get(openid.authorize(browser.begin())).status_code == 403
    openid.info["sub"] = "248289761001"
    assert browser.get(openid.authorize(browser.begin())).status_code == 303


def test_id_tokens_that_are_not_for_this_sign_in_are_refused(server, openid, browser):
    stranger = RSAKey.generate_key(2048, {"kid": "first"})
    own = openid.key
    wrong = [
        ({"nonce": "x"}, {}, own),
        ({"nonce": None}, {}, own),
        ({"aud": "other"}, {}, own),
        ({"aud": [CLIENT, "other"]}, {}, own),  # without azp
        ({"aud": [CLIENT, "other"], "azp": "other"}, {}, own),
        ({"aud": None}, {}, own),
        ({"iss": "https://evil.example"}, {}, own),
        ({"iss": None}, {}, own),
        ({"exp": 1_700_000_000}, {}, own),
        ({"exp": None}, {}, own),
        ({"iat": 9_999_999_999, "exp": 9_999_999_999}, {}, own),
        ({"sub": None}, {}, own),
        ({"sub": 7}, {}, own),
        ({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, {}, own),
        ({}, {"alg": "none"}, own),
        ({}, {"alg": "HS256"}, own),
        ({}, {"kid": "unknown"}, own),
        ({}, {}, stranger),
        ({}, {"kid": None}, stranger),
    ]
    for number, (openid.claims, openid.header, openid.key) in enumerate(wrong):
        if number == 15:
            server.state.failed_sign_ins.__init__()
        answer = browser.get(openid.authorize(browser.begin()))
        assert answer.status_code == 403, (number, answer.text)
        assert "ID token" in answer.text, number
        assert browser.session() is None, number
    openid.claims, openid.header, openid.key = {}, {"kid": None}, own
    server.state.failed_sign_ins.__init__()
    assert browser.get(openid.authorize(browser.begin())).status_code == 303


def test_keys_of_other_kinds_and_new_ones_are_no_problem(openid, browser):
    openid.key = ECKey.generate_key("P-256", {"kid": "second"})
    assert browser.get(openid.authorize(browser.begin())).status_code == 403
    unknown = [{"kty": "new"}, {"kty": "RSA"}, {"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"}, {"kty": []}, {}, 7]
    openid.keys = [*unknown, OctKey.generate_key(256, {"kid": "other"}), *openid.keys, openid.key]
    assert browser.get(openid.authorize(browser.begin())).status_code == 303


@pytest.mark.parametrize(
    ("method", "secret"), [("client_secret_basic", SECRET), ("client_secret_post", SECRET), ("none", "")]
)
def test_the_server_says_who_it_is_as_the_provider_wants_it(server, openid, browser, method, secret):
    openid.method = method
    server.state.openid = OpenIdProvider(openid.issuer, CLIENT, secret)
    assert browser.get(openid.authorize(browser.begin())).status_code == 303


def test_metadata_is_fetched_once_and_keys_with_each_sign_in(openid, browser):
    for _ in range(2):
        assert browser.get(openid.authorize(browser.begin())).status_code == 303
    asked = [one.path for one in openid.requests]
    assert [asked.count(f"/realm/{one}") for one in (".well-known/openid-configuration", "keys")] == [1, 2]


def test_answers_of_other_browsers_and_old_ones_are_refused(server, openid, browser):
    callback = openid.authorize(browser.begin())
    with Browser(server.root) as victim:
        for answer in (victim.get(callback), victim.get(callback.replace("state=", "state=x"))):
            assert (answer.status_code, "not begun in this browser" in answer.text) == (400, True)
        victim.begin()
        # the attacker's state in a browser that has started its own sign-in
        assert victim.get(callback).status_code == 400
        assert victim.projects() == 401
    attempt = {name: value for name, value in browser.cookies.items() if "sign-in" in name}
    assert browser.get(callback).status_code == 303
    assert not [name for name in browser.cookies if "sign-in" in name]
    assert browser.get(callback).status_code == 400
    with Browser(server.root) as thief:
        thief.cookies.update(attempt)
        answer = thief.get(callback)  # even with the cookie, the thief fails at the provider
        assert (answer.status_code, "invalid_grant" in answer.text) == (403, True)
    denied = openid.authorize(browser.begin()).replace("code=", "error=access_denied%3Cscript%3E&x=")
    answer = browser.get(denied)
    assert "access_denied&lt;script&gt;" in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")


def test_nothing_leads_to_another_site(openid, browser):
    foreign = ["https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)"]
    foreign += ["/\t/evil.example", "/\n//evil.example", "", "evil.example", " /x", "/" + "x" * 900, "/x y"]
    for path in foreign:
        assert own_path(path) == "/", path
    assert browser.get(openid.authorize(browser.begin("//evil.example"))).headers["location"] == "/"
    location = browser.begin()
    name, value = next((name, value) for name, value in browser.cookies.items() if "sign-in" in name)
    browser.cookies.clear()
    browser.cookies.set(name, value.partition(".")[0] + ".//evil.example")
    assert browser.get(openid.authorize(location)).headers["location"] == "/"


def test_a_provider_that_is_down_or_another_one_gives_a_sentence(server, openid, browser):
    openid.down = True
    answer = browser.post("/sign-in/openid", json={})
    assert code(answer) == (502, "provider-unavailable")
    assert "answered 503" in answer.text
    openid.down = False
    callback = openid.authorize(browser.begin())
    openid.down = True
    answer = browser.get(callback)
    assert (answer.status_code, "answered 503" in answer.text) == (502, True)
    assert "text/html" in answer.headers["content-type"]
    openid.down = False
    for metadata, message in (
        ({"issuer": "https://evil.example"}, "names itself"),
        ({"token_endpoint": "http://evil.example/token"}, "without https"),
        ({"jwks_uri": None}, "not valid"),
    ):
        openid.metadata = metadata
        server.state.openid = OpenIdProvider(openid.issuer, CLIENT, SECRET)
        answer = browser.post("/sign-in/openid", json={})
        assert (answer.status_code, message in answer.text) == (502, True), answer.text


@pytest.mark.parametrize(
    ("refusal", "shown"),
    [
        ({"error": "invalid<b>\u202e", "error_description": "private"}, "invalid&lt;b&gt;?."),
        ({"error": ["private"]}, "400."),
        ("<h1>private</h1>", "400."),
    ],
)
def test_of_a_refusal_only_the_code_is_shown(openid, browser, refusal, shown):
    openid.refusal = refusal
    answer = browser.get(openid.authorize(browser.begin()))
    assert (answer.status_code, f"refused the sign-in: {shown}" in answer.text) == (403, True), answer.text
    assert "private" not in answer.text


@pytest.mark.parametrize("error", [DatabaseUnavailableError, StoreError])
def test_a_database_that_does_not_answer_gives_a_page(openid, browser, monkeypatch, error):
    def refuse(*_):
        raise error("private")

    assert browser.get(openid.authorize(browser.begin())).status_code == 303
    callback = openid.authorize(browser.begin())
    monkeypatch.setattr(Sessions, "find", refuse)
    monkeypatch.setattr(Members, "scopes", refuse)
    for answer in (browser.get("/sign-in"), browser.get(callback)):
        assert (answer.status_code, "cannot reach its database" in answer.text) == (503, True)
        assert "private" not in answer.text


def test_sign_ins_that_fail_at_the_provider_lock_their_address_out(openid, browser):
    openid.claims = {"nonce": "another"}
    answers = [browser.get(openid.authorize(browser.begin())).status_code for _ in range(20)]
    assert answers == [403] * 20
    assert code(browser.post("/sign-in/openid", json={})) == (429, "too-many-attempts")


def test_a_provider_that_never_answers_holds_nobody_up(server, openid, browser, monkeypatch):
    monkeypatch.setattr("agentv.extensions.team.sign_in.SIGN_IN_S", 0.3)
    openid.answering.clear()
    try:
        answer = browser.post("/sign-in/openid", json={})
    finally:
        openid.answering.set()
    assert code(answer) == (502, "provider-unavailable")
    assert "did not answer within 0.3 seconds" in answer.text
    assert browser.post("/sign-in/openid", json={}).status_code == 200


def test_the_provider_is_an_address_and_a_client(openid):
    assert opened_provider(None, None, {}) is None
    assert opened_provider(openid.issuer, CLIENT, {SECRET_VARIABLE: SECRET}) is not None
    for issuer, client in ((openid.issuer, None), (None, CLIENT), ("http://id.example", CLIENT), ("x", CLIENT)):
        with pytest.raises(UsageError):
            opened_provider(issuer, client, {})


def test_sessions_expire(server):
    moment = [datetime(2026, 11, 23, tzinfo=UTC)]
    sessions = Sessions(server.state.database, lambda: moment[0])
    _, token = server.state.tokens.create("ada", "support", ("read",), None, "test")
    text, began = sessions.begin(token), moment[0]
    moment[0] = began + LONGEST - timedelta(minutes=1)
    assert sessions.find(text) is not None
    moment[0] = began + LONGEST
    assert sessions.find(text) is None
    sessions.begin(token)
    with server.state.database.reading() as transaction:
        assert text not in repr(transaction.rows("SELECT * FROM sessions"))
