"""The agent under test. Replace it with yours; agentv also reads what agent frameworks return."""

ORDERS = {"A-42": "shipped"}


def answer(prompt: str) -> dict:
    """Look up an order with a tool, and answer. The checks read the returned messages as the trace."""
    order = next((word.strip(".,?!") for word in prompt.split() if word.startswith("A-")), None)
    if order is None:
        return {"output": [{"role": "assistant", "content": "Which order do you mean?"}]}
    status = ORDERS.get(order, "unknown")
    call = {"tool": "get_order", "input": {"order_id": order}, "output": {"status": status}}
    return {
        "output": [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "assistant", "content": f"Order {order}: {status}."},
        ]
    }
