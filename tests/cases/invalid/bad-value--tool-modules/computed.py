STATE = {"now": print()}


def refund(order_id: str): ...
