"""Agents as systems under test, and the tools that they are given (AGENTS.md sections 4 and 6).

A new agent is a file or package here whose settings derive from `settings.AgentSettings`, and a line in
`targets/catalogue.py`.
"""
