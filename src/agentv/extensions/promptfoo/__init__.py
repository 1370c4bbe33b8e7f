"""promptfoo's configurations: recognized, and converted to eval files."""

DIALECTS = {"promptfoo": "agentv.extensions.promptfoo.dialect:PROMPTFOO"}

SIGNS = {
    "name:promptfooconfig.yaml": "promptfoo",
    "name:promptfooconfig.yml": "promptfoo",
    "name:promptfooconfig.json": "promptfoo",
    "name:promptfooconfig.[jt]s": "promptfoo",
    "name:promptfooconfig.[cm][jt]s": "promptfoo",
    "keys:prompts+providers": "promptfoo",
    "keys:prompts+targets": "promptfoo",
}

OPTIONS = {
    "convert --missing-vars": "agentv.extensions.promptfoo.options:MISSING_VARS",
    "convert --json": "agentv.extensions.promptfoo.options:JSON",
}
