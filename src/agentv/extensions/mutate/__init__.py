"""Passing answers made worse, to see whether the checks notice."""

COMMANDS = {"mutate": "agentv.extensions.mutate.command:command"}

COMMAND_SECTIONS = {"mutate": "Judge"}
