"""Stand-ins of what frameworks return, with the names and attributes of the real classes."""

import json


class AgentRunResult:
    output = "Order A-42 is shipped."

    def new_messages_json(self):
        used = {"input_tokens": 10, "output_tokens": 5}
        call = {"part_kind": "tool-call", "tool_name": "get_order", "args": {"order_id": "A-42"}, "tool_call_id": "c1"}
        got = {"part_kind": "tool-return", "tool_name": "get_order", "content": "shipped", "tool_call_id": "c1"}
        return json.dumps([
            {"kind": "response", "model_name": "gpt-4.1", "usage": used, "parts": [call]},
            {"kind": "request", "parts": [got]},
            {"kind": "response", "model_name": "gpt-4.1", "usage": used, "parts": [{"part_kind": "text", "content": self.output}]},
        ]).encode()  # fmt: skip


class OtherVersion(AgentRunResult):
    def new_messages_json(self):
        raise TypeError("takes a cursor")


def run(prompt):
    call = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "A-42"}'}}
    messages = [
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "shipped"},
        {"role": "assistant", "content": "Order A-42 is shipped."},
    ]
    return {
        "result": AgentRunResult,
        "state": lambda: {"messages": messages},
        "interrupted": lambda: {"messages": messages[:3], "__interrupt__": ["refund?"]},
        "of another version": OtherVersion,
    }[prompt]()
