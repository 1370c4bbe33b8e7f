"""A run, and what changed since another one, as one HTML file that opens anywhere and asks nobody for anything."""

from agentv.reports.html.page import render
from agentv.reports.html.report import HtmlReport

__all__ = ["HtmlReport", "render"]
