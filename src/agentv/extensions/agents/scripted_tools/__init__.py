"""Scripted MCP tools: the same tools for every agent, one instance for a trial, whose calls we see ourselves."""
