"""The scripted tools of the shop."""


def refund(order_id: str, amount: float, state: dict[str, list[dict[str, object]]]) -> dict[str, float]:
    state["refunds"].append({"order": order_id, "amount": amount})
    return {"refunded": amount}
