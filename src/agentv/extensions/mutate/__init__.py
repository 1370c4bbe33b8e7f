"""Mutation testing of checks: make passing answers worse, and see whether the checks notice."""

COMMANDS = {"mutate": "agentv.extensions.mutate.command:command"}

COMMAND_SECTIONS = {"mutate": "Judge"}
