"""A server that collects the runs of a team and shows them: `serve`, `push`, `pull`."""

COMMANDS = {
    "serve": "agentv.extensions.team.serve:group",
    "push": "agentv.extensions.team.push:command",
    "pull": "agentv.extensions.team.push:group",
}

COMMAND_SECTIONS = {"serve": "Share", "push": "Share", "pull": "Share"}

OPTIONS = {"eval --no-push": "agentv.extensions.team.push:NO_PUSH"}

BESIDE_RUNS = {"push": "agentv.extensions.team.push:pushing"}

CONFIG_KEYS = {"results": "agentv.extensions.team.remote:check_results"}
