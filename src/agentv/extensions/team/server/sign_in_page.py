"""The page on which people sign in. It holds no script and no style, and loads both."""

from __future__ import annotations

from html import escape
from typing import Literal

from msgspec import Struct

from agentv.registry.extensions import PAGES, loaded
from agentv.reports.text.escaping import safe
from agentv.web.documents import module, page

SIGN_IN = "sign_in/sign_in.js"
"""The module that the page begins with."""

LOGO = (
    '<svg class="logo" viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6"></rect>'
    '<path d="M6 12.5 10.2 16.5 18 7.5"></path></svg>'
)


class SignInPage(Struct, frozen=True):
    """What the page shows.

    Attributes:
        way: how people sign in here.
        target: path that is opened afterwards.
        problem: why the last attempt failed; empty: there was none.
        actor: who is signed in already; empty: nobody.
        csrf: of their session.
    """

    way: Literal["openid", "token"]
    target: str
    problem: str = ""
    actor: str = ""
    csrf: str = ""

    def document(self) -> str:
        """The page."""
        static = f"/static/{loaded(PAGES, 'version')()}"
        title = "Signed in" if self.actor else "Sign in"
        body = f"""\
<body class="signin" data-target="{escape(self.target)}">
<main>
<div class="panel">
<p class="brand">{LOGO} agentv</p>
<h1>{title}</h1>
<p class="problem" role="alert" id="problem">{escape(safe(self.problem))}</p>
{self._signed_in() if self.actor else self._form()}
</div>
</main>
</body>
"""
        return page(static, f"{title} · agentv", body, module(static, SIGN_IN), self.csrf)

    def _signed_in(self) -> str:
        return f"""<p>You are signed in as <b><bdi>{escape(safe(self.actor))}</bdi></b>.</p>
<p class="actions"><a class="primary" href="{escape(self.target)}">Continue</a>
<button class="quiet" type="button" id="sign-out">Sign out</button></p>
{_NO_SCRIPT}"""

    def _form(self) -> str:
        return (_OPENID_FORM if self.way == "openid" else _API_FORM) + _NO_SCRIPT


_OPENID_FORM = """<p>This server signs you in with your organization's account.</p>
<form id="openid">
<button class="primary" type="submit">Sign in</button>
</form>
"""

_API_FORM = """<form id="token-form">
<label for="token">API token</label>
<input id="token" type="password" autocomplete="off" spellcheck="false" required aria-describedby="about problem">
<p class="note" id="about">A token with the scope <code>read</code>. Whoever runs this server creates one with
<code>agentv serve token create</code>. Your browser does not store it.</p>
<button class="primary" type="submit">Sign in</button>
</form>
"""

_NO_SCRIPT = """<noscript><p class="warning">This page needs JavaScript.</p></noscript>"""
