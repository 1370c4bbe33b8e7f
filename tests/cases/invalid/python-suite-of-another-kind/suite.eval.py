suite = [{"id": "a"}]
