"""A run, and its changes from another one, as one self-contained HTML file."""

from agentv.reports.html.page import render
from agentv.reports.html.report import HtmlReport

__all__ = ["HtmlReport", "render"]
