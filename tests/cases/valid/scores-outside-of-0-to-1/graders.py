def stars(output):
    return 7


def inside(output):
    return {"score": 1.0}


def below(output):
    return {"score": -0.5, "reason": "far too short"}
