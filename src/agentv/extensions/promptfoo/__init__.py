"""Read promptfoo's configurations as eval files."""

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
