"""An agent that is instrumented by hand, as frameworks are by OpenTelemetry's conventions, OpenInference or both."""

import asyncio
import json

from opentelemetry import trace

tracer = trace.get_tracer("shop")


async def run(prompt):
    if prompt == "silent":
        return "Order A-42 is shipped."
    with tracer.start_as_current_span("invoke_agent shop") as agent:
        agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"})
        asked = [{"role": "user", "parts": [{"type": "text", "content": prompt}]}]
        call = {"type": "tool_call", "id": f"call-{prompt}", "name": "get_order", "arguments": {"order": prompt}}
        with tracer.start_as_current_span("chat gpt-4.1") as chat:
            await asyncio.sleep(0.02)  # others run beside it
            chat.set_attributes({
                "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4.1", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5,
                "gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [call]}]),
            })  # fmt: skip
        with tracer.start_as_current_span("get_order") as tool:
            await asyncio.sleep(0.02)
            tool.set_attributes({"openinference.span.kind": "TOOL", "tool.name": "get_order", "tool_call.id": call["id"], "input.value": json.dumps({"order": prompt}), "output.value": "shipped"})  # fmt: skip
        if prompt == "raises":
            raise ValueError("no route")
        if prompt == "swallowed":
            agent.set_status(trace.StatusCode.ERROR, "no route")
    return "Order A-42 is shipped."
