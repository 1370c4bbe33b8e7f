def refund(:
