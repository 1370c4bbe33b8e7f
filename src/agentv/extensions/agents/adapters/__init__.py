"""Agents as systems under test (AGENTS.md sections 4 and 6).

To add an agent, add a module here whose settings derive from `settings.AgentSettings`, and a line in `PROVIDERS` of
`extensions/agents/__init__.py`.
"""
