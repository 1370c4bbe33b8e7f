STATE = ["paid"]


def refund(order_id: str): ...
