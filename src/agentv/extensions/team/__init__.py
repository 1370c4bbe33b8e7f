"""A server that collects the runs of a team and shows them: `serve`, `push`, `pull`."""

COMMANDS = {
    "serve": "agentv.extensions.team.commands.serve:group",
    "push": "agentv.extensions.team.commands.push:command",
    "pull": "agentv.extensions.team.commands.push:group",
}

COMMAND_SECTIONS = {"serve": "Share", "push": "Share", "pull": "Share"}

OPTIONS = {"eval --no-push": "agentv.extensions.team.commands.pushing:NO_PUSH"}

BESIDE_RUNS = {"push": "agentv.extensions.team.commands.pushing:pushing"}

CONFIG_KEYS = {"results": "agentv.extensions.team.push.remote:check_results"}
