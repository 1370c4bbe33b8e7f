"""Agents as systems under test (AGENTS.md sections 4 and 6).

A new agent is a file or package here whose settings derive from `settings.AgentSettings`, and a line in
`PROVIDERS` of `extensions/agents/__init__.py`.
"""
