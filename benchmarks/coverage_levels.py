"""Coverage of the intervals in reports: rates and scores by clusters, pass@k, runs with errors.

    python benchmarks/coverage_levels.py [--rounds 1000] [rates|scores|chances|errors|repeat …]

Nominal is 95%. The functions are those that compute `summary.json`; rules that they replaced, or that were considered
instead, are shown next to them. With 1,000 rounds a simulated 95% is accurate to about ±1.4%.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import exp, lgamma, log, sqrt

import numpy as np
from scipy import optimize

from agentv.stats.intervals.design_effect import estimated_mean, estimated_rate
from agentv.stats.intervals.means import mean_interval
from agentv.stats.intervals.proportion import wilson_interval
from agentv.stats.samples.case_samples import CaseSamples, SamplesTally

Chance = np.random.Generator
Interval = tuple[float, float] | None

RATES = (0.02, 0.1, 0.3, 0.5, 0.8, 0.98)


def main() -> None:
    """Run the requested simulations and print a table for each."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--rounds", type=int, default=1000)
    options.add_argument("tables", nargs="*", default=list(TABLES))
    given = options.parse_args()
    for name in given.tables:
        TABLES[name](given.rounds)


def held(truth: float, interval: Interval) -> bool:
    """Whether an interval contains the true value; a missing interval counts as containing it."""
    return interval is None or interval[0] - 1e-12 <= truth <= interval[1] + 1e-12


def own_rates(chance: Chance, count: int, rate: float, alike: float) -> np.ndarray:
    """The rate of each cluster: beta-distributed with this intra-cluster correlation."""
    if alike == 0:
        return np.full(count, rate)
    if alike == 1:
        return (chance.random(count) < rate).astype(float)
    shape = 1 / alike - 1
    return chance.beta(rate * shape, (1 - rate) * shape, count)


def rates(rounds: int) -> None:
    """Pass rates of cases in clusters, and what Wilson's interval over all trials would do."""
    print("pass rate: clusters × cases, correlation | coverage at rates", *RATES, "| Wilson over trials, least")
    for count, size in ((5, 1), (100, 1), (1000, 1), (5, 10), (10, 10), (30, 5), (100, 10), (200, 5)):
        for alike in (0.0, 0.1, 0.5, 1.0) if size > 1 else (0.0,):
            found, naive = [], []
            for rate in RATES:
                chance = np.random.default_rng(1)
                both = [_one_rate(chance, (count, size), rate, alike) for _ in range(rounds)]
                found.append(sum(held(rate, ours) for ours, _ in both) / rounds)
                naive.append(sum(held(rate, theirs) for _, theirs in both) / rounds)
            print(f"  {count:4} × {size:2}, {alike:3} |", *(f"{one:6.1%}" for one in found), f"| {min(naive):6.1%}")


def _one_rate(chance: Chance, shape: tuple[int, int], rate: float, alike: float) -> tuple[Interval, Interval]:
    count, size = shape
    totals = chance.binomial(size, own_rates(chance, count, rate, alike))
    sums = [(size, int(total)) for total in totals]
    return estimated_rate(sums).interval, wilson_interval(int(totals.sum()), count * size)


SCORES: dict[str, tuple[float, Callable[[Chance, int], np.ndarray]]] = {
    "uniform": (0.5, lambda chance, count: chance.random(count)),
    "beta(8, 2)": (0.8, lambda chance, count: chance.beta(8, 2, count)),
    "near 0 or 1, beta(0.3, 0.1)": (0.75, lambda chance, count: chance.beta(0.3, 0.1, count)),
    "0.3 or 0.9": (0.6, lambda chance, count: np.where(chance.random(count) < 0.5, 0.3, 0.9)),
    "0.9, but 0 in one of ten": (0.81, lambda chance, count: np.where(chance.random(count) < 0.1, 0.0, 0.9)),
    "nearly 1, but 0 in one of twenty": (
        0.855,
        lambda chance, count: np.where(chance.random(count) < 0.05, 0.0, chance.uniform(0.8, 1, count)),
    ),
    "nearly 1, but 0 in one of fifty": (
        0.882,
        lambda chance, count: np.where(chance.random(count) < 0.02, 0.0, chance.uniform(0.8, 1, count)),
    ),
    "1, but less in one of ten": (
        0.95,
        lambda chance, count: np.where(chance.random(count) < 0.9, 1.0, chance.random(count)),
    ),
    "means of 5 in clusters of 3": (0.75, lambda chance, count: np.repeat(chance.beta(3, 1, count), 3)),
}
"""The mean, and the scores of so many cases; of the last so many clusters."""


def scores(rounds: int) -> None:
    """Mean scores: the one that is shown, the betting interval, Student's t with CR2, and the bootstrap."""
    print("mean score, by case | coverage as shown, betting, t with CR2, percentile bootstrap | widths")
    for count in (5, 14, 20, 50, 100, 300):
        for name, (truth, draw) in SCORES.items():
            chance = np.random.default_rng(1)
            got, widths = np.zeros(4), np.zeros(4)
            for _ in range(rounds):
                values = draw(chance, count)
                clusters = np.repeat(np.arange(count), values.size // count)
                means = values.reshape(count, -1)
                ours = estimated_mean([(len(one), float(one.sum())) for one in means]).interval or (0.0, 1.0)
                by_t = mean_interval(values.tolist(), clusters.tolist())
                drawn = chance.choice(means.mean(axis=1), (400, count)).mean(axis=1)
                percentile = tuple(np.quantile(drawn, (0.025, 0.975)).tolist())
                found = [ours, betting(means.mean(axis=1), chance), (by_t.low, by_t.high), percentile]
                got += [held(truth, one) for one in found]  # type: ignore[arg-type]
                widths += [high - low for low, high in found]
            shown = (f"{one:6.1%}" for one in got / rounds)
            print(f"  {count:4} {name:32} |", *shown, "|", *(f"{one:.3f}" for one in widths / rounds), flush=True)


def betting(values: np.ndarray, chance: Chance, alpha: float = 0.05) -> tuple[float, float]:
    """The hedged betting interval with predictable bets, the values in random order.

    Source: I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal
    Statistical Society B 86 (2024), theorem 3 and remark 3.
    """
    drawn = chance.permutation(values)
    numbers = np.arange(1, drawn.size + 1)
    means = (0.5 + np.cumsum(drawn)) / (numbers + 1)
    variances = (0.25 + np.cumsum((drawn - means) ** 2)) / (numbers + 1)
    bets = np.sqrt(2 * log(2 / alpha) / (drawn.size * np.concatenate(([0.25], variances[:-1]))))

    def refuted(mean: float) -> bool:
        up = np.log1p(np.minimum(bets, 0.75 / mean) * (drawn - mean)).sum()
        down = np.log1p(-np.minimum(bets, 0.75 / (1 - mean)) * (drawn - mean)).sum()
        return bool(max(up, down) >= log(2 / alpha))

    def end(outside: float) -> float:
        inside = float(drawn.mean())
        for _ in range(30 if refuted(outside) else 0):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if refuted(middle) else (middle, outside)
        return outside

    return end(1e-9), end(1 - 1e-9)


def chances(rounds: int) -> None:
    """pass@4 and pass^4 over cases of 5 samples: as shown, and by a beta-binomial fit with the delta method."""
    print("cases of 5 samples, their rates | as shown: pass@4, pass^4 | beta-binomial fit: pass@4, pass^4")
    for count in (5, 10, 30, 100):
        for name, (at, hat, draw) in CASES.items():
            chance = np.random.default_rng(1)
            got = np.zeros(4)
            for _ in range(rounds):
                passed = chance.binomial(5, draw(chance, count))
                tally = SamplesTally()
                for case, number in enumerate(passed):
                    tally.add(CaseSamples(str(case), "s", "t", None, 5, int(number)), case)
                found = tally.samples()
                assert found is not None  # there are cases
                fitted = beta_binomial(passed)
                got[:2] += [held(at, found.pass_at_k_interval[4]), held(hat, found.pass_hat_k_interval[4])]
                got[2:] += [held(at, fitted[0]), held(hat, fitted[1])]
            print(f"  {count:4} cases, {name:34} |", *(f"{one:6.1%}" for one in got / rounds))


def _moment(a: float, b: float, k: int = 4) -> float:
    """The mean of rate^k over beta(a, b)."""
    return exp(lgamma(a + k) - lgamma(a) + lgamma(a + b) - lgamma(a + b + k))


def _of_beta(a: float, b: float) -> tuple[float, float, Callable[[Chance, int], np.ndarray]]:
    return 1 - _moment(b, a), _moment(a, b), lambda chance, count: chance.beta(a, b, count)


CASES: dict[str, tuple[float, float, Callable[[Chance, int], np.ndarray]]] = {
    **{f"beta({a}, {b})": _of_beta(a, b) for a, b in ((2.0, 1.0), (0.5, 0.2), (8.0, 2.0), (0.1, 0.9))},
    "0.9, but never in one of five": (
        0.8 * (1 - 0.1**4),
        0.8 * 0.9**4,
        lambda chance, count: np.where(chance.random(count) < 0.2, 0.0, 0.9),
    ),
    "always, but 0.3 in one of five": (
        0.8 + 0.2 * (1 - 0.7**4),
        0.8 + 0.2 * 0.3**4,
        lambda chance, count: np.where(chance.random(count) < 0.2, 0.3, 1.0),
    ),
}
"""pass@4, pass^4, and the rates of that many cases."""


def beta_binomial(passed: np.ndarray) -> tuple[Interval, Interval]:
    """pass@4 and pass^4 by the likeliest beta-binomial distribution of passes out of 5, on the scale of log odds."""
    numbers = np.bincount(passed, minlength=6)

    def against(point: np.ndarray) -> float:
        a, b = np.exp(np.clip(point, -6, 6))
        whole = lgamma(a) + lgamma(b) - lgamma(a + b)
        each = [lgamma(a + one) + lgamma(b + 5 - one) - lgamma(a + b + 5) - whole for one in range(6)]
        return -float(numbers @ np.array(each)) + 0.01 * float(point @ point)  # a touch of a prior: flat ends exist

    best = optimize.minimize(against, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6}).x
    step = 1e-2 * np.eye(2)
    curvature = np.array([[_second(against, best, one, other) for other in step] for one in step]) / 1e-4
    try:
        spread = np.linalg.inv(curvature)
    except np.linalg.LinAlgError:
        return None, None
    return tuple(_by_delta(value, best, spread) for value in (_at_four, _hat_four))  # type: ignore[return-value]


def _second(against: Callable[[np.ndarray], float], at: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    corners = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
    return sum(sign * against(at + (up * one + across * other) / 2) for up, across, sign in corners)


def _at_four(point: np.ndarray) -> float:
    a, b = np.exp(np.clip(point, -6, 6))
    return 1 - _moment(b, a)


def _hat_four(point: np.ndarray) -> float:
    a, b = np.exp(np.clip(point, -6, 6))
    return _moment(a, b)


def _by_delta(value: Callable[[np.ndarray], float], best: np.ndarray, spread: np.ndarray) -> Interval:
    def odds(point: np.ndarray) -> float:
        share = min(1 - 1e-12, max(1e-12, value(point)))
        return log(share / (1 - share))

    slope = np.array([(odds(best + step) - odds(best - step)) / 2e-3 for step in 1e-3 * np.eye(2)])
    variance = float(slope @ spread @ slope)
    if not variance > 0:
        return None
    centre, reach = odds(best), 1.959964 * sqrt(variance)
    return 1 / (1 + exp(min(700, reach - centre))), 1 / (1 + exp(max(-700, -reach - centre)))


def errors(rounds: int) -> None:
    """Runs with errors: at random, or only in trials that would have failed. The truth is the rate without errors."""
    print("cases, errored, which | interval of the judged, bounds around the rate of all trials, both")
    for count in (50, 200, 1000):
        for share in (0.0, 0.05, 0.1):
            for which in ("any", "failing") if share else ("any",):
                chance = np.random.default_rng(1)
                got = np.zeros(3)
                for _ in range(rounds):
                    passed = chance.random(count) < 0.8
                    erred = chance.random(count) < (share if which == "any" else np.where(passed, 0.0, share / 0.2))
                    judged, right = int((~erred).sum()), int((passed & ~erred).sum())
                    low, high = right / count, (right + count - judged) / count
                    ends = (wilson_interval(right, count)[0], wilson_interval(right + count - judged, count)[1])
                    inside = held(float(passed.mean()), (low, high))
                    got += [
                        held(0.8, estimated_rate({(1, 1): right, (1, 0): judged - right}).interval),
                        inside,
                        held(0.8, ends),
                    ]
                print(f"  {count:5} {share:5.0%} {which:8} |", *(f"{one:6.1%}" for one in got / rounds))


def repeat(rounds: int) -> None:
    """The two rates under repeat, of 200 cases which all pass with a chance of 0.75."""
    print("repeat | sample pass rate, its interval holds 0.75 | cases that meet the rule (mean ≥ 0.8)")
    for number in (1, 2, 3, 5, 10, 20):
        chance = np.random.default_rng(1)
        sampled, met, inside = [], [], 0
        for _ in range(rounds):
            passed = chance.binomial(number, 0.75, 200)
            found = estimated_rate([(number, int(one)) for one in passed])
            sampled.append(found.mean)
            met.append(float((passed / number >= 0.8 - 1e-9).mean()))
            inside += held(0.75, found.interval)
        print(f"  {number:4} | {np.mean(sampled):6.1%} {inside / rounds:6.1%} | {np.mean(met):6.1%}")


TABLES: dict[str, Callable[[int], None]] = {
    "rates": rates,
    "scores": scores,
    "chances": chances,
    "errors": errors,
    "repeat": repeat,
}

if __name__ == "__main__":
    main()
