"""The shop's tools. Each conversation has its own copy of STATE, which these functions change."""

STATE = {
    "today": "2026-05-20",
    "orders": {
        "A-42": {"status": "delivered", "on": "2026-05-02", "items": {"lamp": 40.0, "bulb": 4.9}},
        "A-17": {"status": "delivered", "on": "2026-03-01", "items": {"chair": 80.0}},
        "B-03": {"status": "pending", "on": "2026-05-19", "items": {"desk": 210.0}},
        "B-04": {"status": "pending", "on": "2026-05-19", "items": {"shelf": 65.0}},
        "C-08": {"status": "delivered", "on": "2026-05-12", "items": {"boots 42": 120.0}},
    },
    "stock": {"boots 43": 120.0, "boots 44": 135.0},
}


def get_order(order_id: str, state):
    """Look up an order: its status, the day of that status, its items with prices, and today's date."""
    return {**_order(order_id, state), "today": state["today"]}


def refund(order_id: str, items: list[str], state):
    """Refund items of a delivered order. Returns the amount."""
    order = _order(order_id, state)
    if order["status"] != "delivered":
        raise ValueError(f"{order_id} is {order['status']}, not delivered")
    amount = round(sum(order["items"].pop(item) for item in items), 2)
    order["refunded"] = round(order.get("refunded", 0) + amount, 2)
    return {"amount": order["refunded"]}


def exchange(order_id: str, item: str, new_item: str, state):
    """Exchange an item of a delivered order for one in stock. Returns the difference in price."""
    order = _order(order_id, state)
    price = state["stock"].pop(new_item)
    difference = round(price - order["items"].pop(item), 2)
    order["items"][new_item] = price
    return {"difference": difference}


def cancel(order_id: str, state):
    """Cancel a pending order."""
    order = _order(order_id, state)
    if order["status"] != "pending":
        raise ValueError(f"{order_id} is {order['status']}, not pending")
    order["status"] = "cancelled"


def _order(order_id, state):
    if order_id not in state["orders"]:
        raise ValueError(f"there is no order {order_id}")
    return state["orders"][order_id]
