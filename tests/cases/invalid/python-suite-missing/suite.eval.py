suit = {}
