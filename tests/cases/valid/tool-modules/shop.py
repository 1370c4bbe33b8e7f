STATE = {"orders": {"A-42": {"status": "paid"}}, "log": []}


def refund(order_id: str, state, amount: float = 0):
    """Refund an order."""
    if order_id not in state["orders"]:
        state["log"].append("lost: what a call changes before it raises does not count")
        raise KeyError(f"no order {order_id}")
    state["orders"][order_id]["status"] = "refunded"
    return {"amount": amount}


def _helper():
    raise AssertionError("private functions are no tools")
