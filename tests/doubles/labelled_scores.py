"""Labelled answers computed by plain arithmetic, so that other programs can produce the same: see
`benchmarks/judge_oracles.py`."""


def numbers(seed):
    """Yield pseudo-random numbers in 0..1."""
    while True:
        seed = (seed * 48271) % 2147483647
        yield seed / 2147483647


def scored_answers(count, seed=7):
    """Return tuples (judge's verdict, judge's score, person's score or None), on a scale of 1 to 5 points."""
    chance = numbers(seed)
    found = []
    for _ in range(count):
        truth = round(4 * next(chance) ** 0.6) / 4
        judge = min(1.0, max(0.0, truth + round(2 * next(chance) - 0.7) / 4))
        drawn = next(chance) < (0.3 if judge >= 0.75 else 0.6)
        found.append((judge >= 0.75, judge, truth if drawn else None))
    return found


def verdicts(count, seed=11):
    """Return tuples (judge passes, person passes)."""
    chance = numbers(seed)
    found = []
    for _ in range(count):
        person = next(chance) < 0.7
        found.append((next(chance) < (0.85 if person else 0.3), person))
    return found
