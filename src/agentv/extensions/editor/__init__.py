"""The language server that editors start to check and complete eval files."""

COMMANDS = {"lsp": "agentv.extensions.editor.command:command"}
