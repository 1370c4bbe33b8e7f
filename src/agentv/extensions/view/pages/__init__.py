"""A run, and its changes from another one, as one self-contained HTML file."""

from agentv.extensions.view.pages.page import render
from agentv.extensions.view.pages.report import HtmlReport

__all__ = ["HtmlReport", "render"]
