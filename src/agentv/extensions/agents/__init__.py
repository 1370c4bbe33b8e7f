"""Agents as targets: workspaces, sandboxes, traces, scripted tools, the gateway, and checks of what agents did."""

COMMANDS = {
    "prepare": "agentv.extensions.agents.commands.work:prepare",
    "grade": "agentv.extensions.agents.commands.work:grade",
    "check": "agentv.extensions.agents.commands.work:check",
    "trace": "agentv.extensions.agents.commands.trace:group",
    "import": "agentv.extensions.agents.commands.importing:command",
}

COMMAND_SECTIONS = {"prepare": "Agents", "grade": "Agents", "check": "Judge", "trace": "Agents", "import": "Share"}

PROVIDERS = {
    "acp": "agentv.extensions.agents.adapters.acp:Acp",
    "claude": "agentv.extensions.agents.adapters.claude:Claude",
    "codex": "agentv.extensions.agents.adapters.codex:Codex",
    "gemini-cli": "agentv.extensions.agents.adapters.gemini_cli:GeminiCli",
    "copilot-cli": "agentv.extensions.agents.adapters.copilot_cli:CopilotCli",
    "pi-cli": "agentv.extensions.agents.adapters.pi_cli:PiCli",
    "opencode": "agentv.extensions.agents.adapters.opencode:OpenCode",
    "mini-swe-agent": "agentv.extensions.agents.adapters.mini_swe_agent:MiniSweAgent",
}

ASSERTIONS = {
    "tool-trajectory": "agentv.extensions.agents.assertions.tool_calls:ToolTrajectory",
    "tool-call-f1": "agentv.extensions.agents.assertions.tool_calls:ToolCallF1",
    "trajectory:tool-used": "agentv.extensions.agents.assertions.trajectory:ToolUsed",
    "trajectory:tool-sequence": "agentv.extensions.agents.assertions.trajectory:ToolSequence",
    "trajectory:tool-args-match": "agentv.extensions.agents.assertions.trajectory:ToolArgsMatch",
    "trajectory:step-count": "agentv.extensions.agents.assertions.trajectory:StepCount",
    "activation": "agentv.extensions.agents.assertions.skills:Activation",
    "agent-rubric": "agentv.extensions.agents.assertions.files:AgentRubric",
    "skill-used": "agentv.extensions.agents.assertions.trajectory:SkillUsed",
    "tool-state": "agentv.extensions.agents.assertions.tool_calls:ToolState",
    "command": "agentv.extensions.agents.assertions.command:CommandPasses",
    "file-exists": "agentv.extensions.agents.assertions.files:FileExists",
    "file-contains": "agentv.extensions.agents.assertions.files:FileContains",
    "file-equals": "agentv.extensions.agents.assertions.files:FileEquals",
    "file-json": "agentv.extensions.agents.assertions.files:FileJson",
    "file-changes": "agentv.extensions.agents.assertions.files:FileChanges",
    "diff": "agentv.extensions.agents.assertions.files:Diff",
    "tool-errors": "agentv.extensions.agents.assertions.tool_calls:ToolErrors",
    "permission-denials": "agentv.extensions.agents.assertions.tool_calls:PermissionDenials",
    "turns": "agentv.extensions.agents.assertions.tool_calls:Turns",
}

SUITE_KEYS = {
    "workspace": "agentv.extensions.agents.authoring.schema:WORKSPACE",
    "sandbox": "agentv.extensions.agents.authoring.schema:SANDBOX",
    "environment": "agentv.extensions.agents.authoring.schema:ENVIRONMENT",
    "tools": "agentv.extensions.agents.authoring.schema:TOOLS",
    "variants": "agentv.extensions.agents.authoring.schema:VARIANTS",
    "extensions": "agentv.extensions.agents.authoring.schema:EXTENSIONS",
    "activation": "agentv.extensions.agents.authoring.schema:ACTIVATION",
    "limits": "agentv.authoring.fields.schema:AuthoredLimits",
}

CASE_KEYS = {
    "workspace": "agentv.extensions.agents.authoring.schema:WORKSPACE",
    "sandbox": "agentv.extensions.agents.authoring.schema:SANDBOX",
    "environment": "agentv.extensions.agents.authoring.schema:ENVIRONMENT",
    "tools": "agentv.extensions.agents.authoring.schema:TOOLS",
    "solution": "agentv.extensions.agents.authoring.schema:SOLUTION",
    "user": "agentv.extensions.agents.authoring.schema:USER",
    "limits": "agentv.authoring.fields.schema:AuthoredLimits",
}

SCHEMA_DEFS = {"workspaces": "agentv.extensions.agents.authoring.schema:workspace_defs"}

PORTS = {
    "ModelExchanges": "agentv.extensions.agents.gateway.recording:CassetteExchanges",
    "Sandboxes": "agentv.extensions.agents.workspaces.choice:LocalSandboxes",
    "TrialWorks": "agentv.extensions.agents.trial.works:RunWorks",
    "WorkingAgents": "agentv.extensions.agents.trial.working:AgentsView",
    "WorkReader": "agentv.extensions.agents.authoring.reader:SuiteReader",
}

RETURNS = {"frameworks": "agentv.extensions.agents.traces.returns:answer_in"}

RECORDINGS = {"otel": "agentv.extensions.agents.traces.spans:SpanRecording"}

TRACE_FORMATS = {
    "otlp": "agentv.extensions.agents.commands.stored_traces:export_otlp",
    "atif": "agentv.extensions.agents.commands.stored_traces:export_atif",
}

OPTIONS = {
    "eval --variant": "agentv.extensions.agents.commands:VARIANT",
    "eval --sandbox": "agentv.extensions.agents.commands:SANDBOX",
    "eval --keep-workspaces": "agentv.extensions.agents.commands:KEEP_WORKSPACES",
    "eval --workspace-path": "agentv.extensions.agents.commands:WORKSPACE_PATH",
}
