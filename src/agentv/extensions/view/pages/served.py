"""The document of the pages of a server: it holds no data and no script, and loads both."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from agentv.extensions.view.pages.page import META

ENTRY = "app.js"
"""The module that the pages of a server begin with."""

PROJECTS = "projects.js"
"""The module that a team's list of projects begins with."""

SIGN_IN = "sign_in/sign_in.js"
"""The module that the page begins with on which people sign in."""

PAGES = (ENTRY, PROJECTS, SIGN_IN)

ICON = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="#3048c4"/>'
    '<path d="M6 12.5 10.2 16.5 18 7.5" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/></svg>'
)


def document(static: str, token: str = "", entry: str = ENTRY) -> str:
    """The document.

    Args:
        static: address of the folder of modules, without a slash at its end, such as `static/ab12cd`.
        entry: path of the module that the page begins with.
        token: what requests that change something prove with that they come from this page; empty: none can.
    """
    told = f'<meta name="agentv-token" content="{escape(token)}">\n' if token else ""
    at = escape(static)
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{META}
{told}<title>agentv</title>
<link rel="icon" href="{ICON}">
<link rel="stylesheet" href="{at}/style.css">
<script src="{at}/vendor/markdown-it.js" defer></script>
<script type="module" src="{at}/{entry}"></script>
</head>
<body>
<noscript><p class="plain">This page needs JavaScript.</p></noscript>
<div id="page"><p class="plain">Opening…</p></div>
</body>
</html>
"""


def message_page(static: str, title: str, message: str, home: str) -> str:
    """A page with one message, for whoever cannot have the page that they asked for.

    Args:
        static: see `document`.
        title: its heading.
        message: a sentence without its capital and its full stop.
        home: address of the page to go on with.
    """
    words = escape(message[:1].upper() + message[1:])
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{META}
<title>{escape(title)} · agentv</title>
<link rel="icon" href="{ICON}">
<link rel="stylesheet" href="{escape(static)}/style.css">
</head>
<body>
<main class="screen"><article>
<h1>{escape(title)}</h1>
<p class="panel">{words}.</p>
<p><a href="{escape(home)}">Projects</a></p>
</article></main>
</body>
</html>
"""
