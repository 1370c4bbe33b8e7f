"""Convert samples of deepeval, OpenAI evals and Inspect and tasks of SWE-bench, Harbor and tau-bench to eval files."""

DIALECTS = {
    "deepeval": "agentv.extensions.datasets.dialects:OF_DEEPEVAL",
    "openai-evals": "agentv.extensions.datasets.dialects:OF_OPENAI_EVALS",
    "inspect": "agentv.extensions.datasets.dialects:OF_INSPECT",
    "swe-bench": "agentv.extensions.datasets.dialects:OF_SWE_BENCH",
    "harbor": "agentv.extensions.datasets.dialects:OF_HARBOR",
    "tau-bench": "agentv.extensions.datasets.dialects:OF_TAU_BENCH",
}

_ANSWER_KEYS = ("actual_output", "retrieval_context", "additional_metadata", "source_file")
_TOOL_KEYS = ("tools_called", "expected_tools", "custom_column_key_values")
SIGNS = {
    "record:user_scenario+evaluation_criteria": "tau-bench",
    "record:instruction+actions": "tau-bench",
    "record:input+ideal": "openai-evals",
    "record:instance_id+test_patch": "swe-bench",
    **{f"record:input+{key}": "inspect" for key in ("target", "choices", "sandbox", "setup")},
    "record:input+expectedOutput": "deepeval",
    **{
        f"record:input+{key}": "deepeval"
        for name in (*_ANSWER_KEYS, *_TOOL_KEYS)
        for key in (name, name[0] + name.title().replace("_", "")[1:])
    },
    **{
        f"record:scenario+{key}": "deepeval"
        for key in ("user_description", "userDescription", "persona", "expected_outcome", "expectedOutcome")
    },
}

OPTIONS = {
    "convert --assert": "agentv.extensions.datasets.options:ASSERT",
    "convert --test-command": "agentv.extensions.datasets.options:TEST_COMMAND",
    "convert --tools": "agentv.extensions.datasets.options:TOOLS",
}
