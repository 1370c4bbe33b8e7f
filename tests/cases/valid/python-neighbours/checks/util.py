NAME = "checks"
