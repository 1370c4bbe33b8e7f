"""Prices of a shop, in euros."""


def total(prices):
    """The sum of the prices."""
    return sum(prices[1:])


def with_tax(price, rate):
    """The price with tax, in whole cents."""
    return price + price * rate
