"""HTML documents of a server's pages. They contain no data, scripts or styles; they load all three."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

META = """\
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">"""

ICON = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="#3048c4"/>'
    '<path d="M6 12.5 10.2 16.5 18 7.5" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/></svg>'
)


def document(static: str, entry: str, token: str = "") -> str:
    """The HTML document of a page that is rendered by its script.

    Args:
        static: address of the folder of modules, without a slash at its end, such as `static/ab12cd`.
        entry: path of the page's entry module.
        token: proves that a request that changes something comes from this page; "" if the page can change nothing.
    """
    script = f'<script src="{escape(static)}/vendor/markdown-it.js" defer></script>\n'
    body = """\
<body>
<noscript><p class="plain">This page needs JavaScript.</p></noscript>
<div id="page"><p class="plain">Opening…</p></div>
</body>
"""
    return page(static, "agentv", body, f"{script}{module(static, entry)}", token)


def page(static: str, title: str, body: str, scripts: str = "", token: str = "") -> str:
    """An HTML document with the given body. `scripts` are elements for its head; see `document` for the others."""
    meta_token = f'<meta name="agentv-token" content="{escape(token)}">\n' if token else ""
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{META}
{meta_token}<title>{escape(title)}</title>
<link rel="icon" href="{ICON}">
<link rel="stylesheet" href="{escape(static)}/style.css">
{scripts}</head>
{body}</html>
"""


def module(static: str, entry: str) -> str:
    """The script element that loads a page's entry module."""
    return f'<script type="module" src="{escape(static)}/{entry}"></script>\n'


def message_page(static: str, title: str, message: str, home: str) -> str:
    """A page with one message, shown in place of a page that the user cannot open.

    Args:
        static: see `document`.
        title: its heading.
        message: a sentence without its capital and its full stop.
        home: address that the link below the message leads to.
    """
    body = f"""\
<body>
<main class="screen"><article>
<h1>{escape(title)}</h1>
<p class="panel">{escape(message[:1].upper() + message[1:])}.</p>
<p><a href="{escape(home)}">Projects</a></p>
</article></main>
</body>
"""
    return page(static, f"{title} · agentv", body)
