"""Comments the Markdown report on the pull request of a GitHub Actions run, or updates the comment of an earlier run.

The comment begins with a marker that no reader sees. Only comments of a bot are updated, because anyone can write a
comment that begins like that. A failure is a warning: it changes no verdict.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

PER_PAGE = 100
TIMEOUT_S = 30
FORBIDDEN = "the token may not write comments: a pull request from a fork, or no `permissions: pull-requests: write`"


class Comments:
    """The comments of one pull request, by GitHub's REST API."""

    def __init__(self, env: Mapping[str, str], number: int) -> None:
        self._api = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}/issues"
        self._number = number
        self._token = env["AGENTV_ACTION_TOKEN"]

    def publish(self, marker: str, text: str) -> None:
        """Update the comment that begins with the marker, or write a new one."""
        body = {"body": f"{marker}\n{text}"}
        found = self._find(marker)
        if found is None:
            self._call("POST", f"{self._number}/comments", body)
        else:
            self._call("PATCH", f"comments/{found}", body)

    def _find(self, marker: str) -> int | None:
        """The id of the oldest comment of a bot that begins with the marker."""
        page = 1
        while True:
            comments = self._call("GET", f"{self._number}/comments?per_page={PER_PAGE}&page={page}")
            if not isinstance(comments, list) or not all(isinstance(one, dict) for one in comments):
                raise ValueError("no list of comments")
            for one in comments:
                # GitHub's schema allows null for both, such as the user of an account that is deleted
                if (one.get("body") or "").startswith(marker) and (one.get("user") or {}).get("type") == "Bot":
                    return int(one["id"])
            if len(comments) < PER_PAGE:
                return None
            page += 1

    def _call(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        headers = {"authorization": f"Bearer {self._token}", "accept": "application/vnd.github+json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._api}/{path}", data, headers, method=method)  # noqa: S310  # the runner gives the URL
        with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310  # as above
            return json.load(response)


def pull_request(env: Mapping[str, str]) -> int | None:
    """The number of the pull request that started the run; None: something else did."""
    event = json.loads(Path(env["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    found = event.get("pull_request")
    return int(found["number"]) if found else None


def marker_of(name: str) -> str:
    """The marker of a comment: a comment of HTML, which no name can end. Every name has its own."""
    shown, digest = (
        re.sub(r"[^A-Za-z0-9 ._]", "_", name),
        hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest(),
    )
    return f"<!-- agentv report: {shown} {digest[:16]} -->"


def main(env: Mapping[str, str]) -> int:
    """Publish the report; the exit status is always 0."""
    number = pull_request(env)
    if number is None:
        sys.stdout.write("not a pull request: no comment\n")
        return 0
    text = Path(env["AGENTV_ACTION_REPORT"]).read_text(encoding="utf-8")
    try:
        Comments(env, number).publish(marker_of(env["AGENTV_ACTION_COMMENT_ID"]), text)
    except HTTPError as error:
        reason = FORBIDDEN if error.code in (401, 403, 404) else f"GitHub responded with {error.code}"
        sys.stdout.write(f"::warning title=agentv::no comment: {reason}\n")
    except (OSError, HTTPException):
        sys.stdout.write("::warning title=agentv::no comment: no response from GitHub\n")
    except (ValueError, LookupError):
        sys.stdout.write("::warning title=agentv::no comment: GitHub's response is malformed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
