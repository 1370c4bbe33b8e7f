"""Agents that print a JSON stream of their own: one file for each, and what they share.

A new agent is a file here that derives its settings from `model_access.NativeProvider`, and a line in
`PROVIDERS` of `extensions/agents/__init__.py`.
"""
