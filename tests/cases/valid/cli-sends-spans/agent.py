"""A program that sends its spans by OTLP, in JSON, and prints nothing of them."""

import json
import os
import sys
from urllib.request import Request, urlopen

prompt = sys.stdin.read()
_, trace, parent, _ = os.environ["TRACEPARENT"].split("-")


def span(identity, above, start, **about):
    values = [{"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": value}} for key, value in about.items()]  # fmt: skip
    return {"traceId": trace, "spanId": identity, "parentSpanId": above, "name": identity, "attributes": values,
            "startTimeUnixNano": 10**18 + start * 10**6, "endTimeUnixNano": 10**18 + (start + 5) * 10**6}  # fmt: skip


def send(*spans):
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
    urlopen(Request(url, body, {"Content-Type": "application/json"})).read()


root = span("aa", parent, 0, **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"})
if prompt == "fails":
    root["status"] = {"code": 2, "message": "no route"}
if prompt != "silent":
    said = json.dumps([{"role": "assistant", "content": "shipped"}])
    send(
        span("bb", "aa", 1, **{"openinference.span.kind": "TOOL", "tool.name": "get_order", "input.value": json.dumps({"order": prompt})}),
        span("cc", "aa", 7, **{"gen_ai.operation.name": "chat", "gen_ai.output.messages": said, "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}),
    )  # fmt: skip
    send(root)
print("Order A-42 is shipped.")
