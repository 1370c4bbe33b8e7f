STATE = {"paid": {"A-42"}}


def refund(order_id: str): ...
