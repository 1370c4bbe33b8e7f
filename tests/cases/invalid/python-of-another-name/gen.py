suite = {}
