from dataclasses import dataclass, field


@dataclass
class Result:
    pass_: bool
    score: float
    reason: str
    component_results: list = field(default_factory=list)
    named_scores: dict = field(default_factory=dict)


def get_assert(response, given):
    polite = given["config"]["polite"] and "hi" in response["greeting"]
    parts = [{"pass_": polite, "score": 1, "reason": "greets"}]
    return Result(polite, 1.0, "all is well", parts, {"polite": 1.0})
