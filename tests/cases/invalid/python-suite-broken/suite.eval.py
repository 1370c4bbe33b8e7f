suite = {
