"""Turn suites into trials: all, sampled or failed ones (SPEC sections 9, 10 and 12). Pure, and lazy to save memory."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappush, heappushpop
from itertools import chain, groupby

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.run.trial import DEFAULT_ALPHA, Trial
from agentv.model.suite.suite import DEFAULT_THRESHOLD, DEFAULT_TIMEOUT_S, Case, Suite, TargetSpec, Until
from agentv.model.suite.workspace import Variant

_NUMBER_BYTES = 16
"""Length of a case's random number in bytes, enough for all cases to have different ones."""


class DrawnCases(Struct, frozen=True):
    """A random sample of the selected cases.

    Attributes:
        root: absolute path that suite paths are relative to, so that a checkout elsewhere draws the same cases.
        bound: the largest random number that was drawn; None if all cases were drawn.
        size, of: number of drawn cases, and of all selected cases.
    """

    seed: int
    root: str
    bound: bytes | None
    size: int
    of: int

    def contains(self, suite: Suite, case: Case) -> bool:
        """Return whether a case was drawn. A case with several prompts is drawn with all of them or not at all."""
        return self.bound is None or draw_number(suite, case, self.seed, self.root) <= self.bound


def draw(suites: Iterable[Suite], chosen: Callable[[Case], bool], number: int, *, seed: int, root: str) -> DrawnCases:
    """Draw a random sample of the selected cases from all suites together; all of them if there are fewer."""
    drawn: list[bytes] = []  # a min-heap of complements, so that the largest number is dropped first
    of = 0
    for suite in suites:
        before: str | None = None
        for case in suite.cases:
            if case.id == before or not chosen(case):
                continue
            before = case.id
            of += 1
            mirrored = draw_number(suite, case, seed, root).translate(_COMPLEMENT)
            if len(drawn) < number:
                heappush(drawn, mirrored)
            else:
                heappushpop(drawn, mirrored)
    bound = drawn[0].translate(_COMPLEMENT) if of > number else None
    return DrawnCases(seed, root, bound, len(drawn), of)


def draw_number(suite: Suite, case: Case, seed: int, root: str) -> bytes:
    """Return the random number of a case under a seed."""
    facts = f"{seed}\0{suite.path.removeprefix(root)}\0{suite.name}\0{case.id}"
    return _hash(facts)


def _hash(facts: str) -> bytes:
    return hashlib.blake2b(facts.encode(errors="surrogatepass"), digest_size=_NUMBER_BYTES).digest()


_COMPLEMENT = bytes(255 - byte for byte in range(256))


FailedKey = tuple[str, str, str, str | None, str, str | None]
"""Path and name of the suite, id and prompt of the case, names of the target and of the variant."""


class FailedTrials(Struct, frozen=True):
    """Trials that did not pass when they last ran. Paths are absolute."""

    keys: frozenset[FailedKey]
    _cases: frozenset[tuple[str, str, str, str | None]] = field(default=frozenset())

    @classmethod
    def of(cls, keys: Iterable[FailedKey]) -> FailedTrials:
        """Create an instance from the keys of the trials."""
        found = frozenset(keys)
        return cls(found, frozenset(key[:4] for key in found))

    def contains_case(self, suite: Suite, case: Case) -> bool:
        """Return whether the case failed to pass with some target or variant."""
        return (suite.path, suite.name, case.id, case.prompt_id) in self._cases

    def contains(self, suite: Suite, case: Case, target: TargetSpec, variant: Variant | None) -> bool:
        """Return whether the case did not pass with this target and variant.

        If cases of the suite depend on each other or are compared, a failed case runs with all targets and variants.
        """
        if suite.links or suite.compares:
            return True
        name = None if variant is None else variant.name
        return (suite.path, suite.name, case.id, case.prompt_id, target.name, name) in self.keys


AGENT_TIMEOUT_S = 1_800.0
"""Default timeout of an attempt at a case with a workspace, in seconds."""

PlannedCase = tuple[Case, TargetSpec, "Variant | None"]


def every_case(_case: Case) -> bool:
    """Select every case."""
    return True


class Shard(Struct, frozen=True):
    """One of several parts of the selected cases: every N-th one, starting with the I-th.

    Attributes:
        index: number of this shard, from 1.
        of: number of shards.
        starts: number of the first selected case of each suite, counted over all suites of the plan.
    """

    index: int
    of: int
    starts: tuple[int, ...]


class PlanSettings(Struct, frozen=True):
    """Command-line options that override the settings of every file. None: the files decide.

    Attributes:
        chosen: returns whether a case is selected.
        flagged_targets: the targets come from the command line or AGENTV_TARGET, so they override a case's own.
        limit: maximum number of cases of each suite; one with several prompts counts once.
        sample: the drawn cases; None: all selected ones.
        prompts: ids or labels of the prompts to run, leaving out cases without a prompt; empty: all cases.
        variants: names of the variants to run, in suites that have variants; empty: all.
        shard: run only this part of the selected cases (`Plan.sharded` makes it); None: all of them.
        shuffle: seed of a random order of the trials; None: the order of the files.
        failed: the failed trials to run, with their dependencies; None: all selected trials.
    """

    repeat: int | None = None
    until: Until | None = None
    alpha: float | None = None
    threshold: float | None = None
    timeout_s: float | None = None
    flagged_targets: bool = False
    chosen: Callable[[Case], bool] = every_case
    limit: int | None = None
    sample: DrawnCases | None = None
    prompts: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    shard: Shard | None = None
    shuffle: int | None = None
    failed: FailedTrials | None = None


class Plan(Struct, frozen=True):
    """The trials of a run, in order: suite, target, variant, case, sample."""

    suites: Sequence[Suite]
    settings: PlanSettings

    def __iter__(self) -> Iterator[Trial]:
        """Iterate over the trials, from the start at every call."""
        groups, seed = chain.from_iterable(map(self._groups, self.suites)), self.settings.shuffle
        if seed is None:
            return chain.from_iterable(groups)
        held = [trials for group in groups if (trials := list(group))]
        # sorted by a hash of the first key, so that editing one case does not reorder the others
        held.sort(key=lambda trials: _hash(f"shuffled\0{seed}\0{trials[0].key}"))
        return chain.from_iterable(held)

    def _groups(self, suite: Suite) -> Iterator[Iterable[Trial]]:
        """Yield a suite's trials in groups that shuffling keeps together: samples of a case, and compared trials."""
        if not suite.compares:
            yield from (self.samples(suite, *planned) for planned in self.planned(suite))
            return
        for _, rivals in groupby(self.planned(suite), key=lambda planned: planned[0].id):
            samples = [list(self.samples(suite, *planned)) for planned in rivals]
            trials: list[Trial] = []
            for group in zip(*samples, strict=True):
                keys = tuple(trial.key for trial in group) if compares(group[0].case) else ()
                trials += (replace(trial, comparison_group=keys) for trial in group)
            yield trials

    @property
    def whole(self) -> Plan:
        """The plan without a selection: all cases of the suites, with all prompts and variants."""
        everything = replace(self.settings, chosen=every_case, limit=None, sample=None, failed=None)
        return Plan(self.suites, replace(everything, prompts=(), variants=(), shard=None))

    def sharded(self, index: int, of: int) -> Plan:
        """Return the plan of one of `of` equal shards; cases that depend on each other are in the same one."""
        starts = [0]
        for suite in self.suites:
            starts.append(max((number + 1 for number, _ in self._numbered(suite, starts[-1])), default=starts[-1]))
        return Plan(self.suites, replace(self.settings, shard=Shard(index, of, tuple(starts))))

    @property
    def unsharded(self) -> Plan:
        """The plan of all shards together."""
        return Plan(self.suites, replace(self.settings, shard=None))

    def planned_cases(self) -> Iterator[tuple[Suite, Case, TargetSpec, Variant | None]]:
        """Yield every case with every target and variant that it runs on."""
        for suite in self.suites:
            yield from ((suite, *planned) for planned in self.planned(suite))

    def variants(self, suite: Suite) -> tuple[Variant | None, ...]:
        """Return the variants of a suite that take part; (None,) if the suite has none."""
        chosen = self.settings.variants
        if not suite.variants:
            return (None,)
        return tuple(one for one in suite.variants if not chosen or one.name in chosen)

    def prompts(self, suite: Suite) -> tuple[str, ...]:
        """Return the ids of the suite's prompts that take part."""
        chosen = self.settings.prompts
        return tuple(one for one, label in suite.prompts.items() if not chosen or one in chosen or label in chosen)

    def planned(self, suite: Suite) -> Iterator[PlannedCase]:
        """Yield the cases of one suite with their targets and variants, by target; by case if answers are compared."""
        targets, variants, failed = suite.targets or (None,), self.variants(suite), self.settings.failed
        places = [(place, target, variant) for place, target in enumerate(targets) for variant in variants]
        if suite.compares:
            planned = ((case, *place) for case in self._cases(suite) for place in places)
        else:
            planned = ((case, *place) for place in places for case in self._cases(suite))
        for case, place, target, variant in planned:
            own = self._own_target(suite, case)
            if own is not None and place > 0:
                continue  # a case with its own target runs only on that one, once
            chosen = own or target
            if chosen is not None and (failed is None or failed.contains(suite, case, chosen, variant)):
                yield case, chosen, variant

    def _own_target(self, suite: Suite, case: Case) -> TargetSpec | None:
        """Return the only target that a case runs on, or None if it runs on all of the suite's targets."""
        if case.asks_judge:
            return judge_of(suite, case, next(iter(suite.targets), None))
        return None if self.settings.flagged_targets else case.target

    def counts(self) -> tuple[int, int]:
        """Return the numbers of distinct cases and of trials."""
        cases = trials = 0
        if self.settings.failed is not None:
            found = set()
            for suite, case, _, _ in self.planned_cases():
                found.add((suite.path, suite.name, case.id))
                trials += self.repeat(suite, case.repeat)
            return len(found), trials
        for suite in self.suites:
            entries = 0
            for (repeat, own_target), number in self._tally(suite).items():
                places = (1 if own_target else len(suite.targets)) * len(self.variants(suite))
                entries += number if places else 0
                trials += number * places * self.repeat(suite, repeat)
            cases += entries // max(1, len(self.prompts(suite)))  # every case runs with every prompt
        return cases, trials

    def _tally(self, suite: Suite) -> Mapping[tuple[int | None, bool], int]:
        """Count the cases that take part, by their own `repeat` and by whether they have their own target."""
        if suite.tally is None or not self._takes_all:
            return Counter((case.repeat, self._own_target(suite, case) is not None) for case in self._cases(suite))
        if not self.settings.flagged_targets:
            return suite.tally
        found: Counter[tuple[int | None, bool]] = Counter()
        for (repeat, _), number in suite.tally.items():
            found[repeat, False] += number
        return found

    def repeat(self, suite: Suite, own: int | None) -> int:
        """Return the number of samples of a case whose own `repeat` is `own`."""
        return self.settings.repeat or own or suite.run.repeat or 1

    def alpha(self, suite: Suite) -> float | None:
        """Return the error rate at which sampling of a suite's cases may end early; None: it does not end early."""
        settings, run = self.settings, suite.run
        if (settings.until or run.until) is None:
            return None
        return _first(settings.alpha, run.alpha, DEFAULT_ALPHA)

    @property
    def samples_in_turn(self) -> bool:
        """Whether samples of some cases run one after the other, because earlier ones decide about later ones."""
        return self.ends_early or any(suite.run.cost_limit_usd is not None for suite in self.suites)

    @property
    def ends_early(self) -> bool:
        """Whether sampling of some cases may end early."""
        return any(self.alpha(suite) is not None for suite in self.suites)

    @property
    def _takes_all(self) -> bool:
        settings = self.settings
        parts = (settings.limit, settings.sample, settings.failed, settings.shard)
        return not any(part is not None for part in parts) and not settings.prompts and settings.chosen is every_case

    def _cases(self, suite: Suite) -> Iterator[Case]:
        """Yield the cases that take part: the chosen ones and their dependencies."""
        if self._takes_all:
            yield from _with_positions(suite)
        elif suite.links:
            taking_part = _with_dependencies((case.id for case in self._chosen(suite)), suite)
            yield from (case for case in self._entries(suite) if case.id in taking_part)
        else:
            yield from self._chosen(suite)

    def added_dependencies(self) -> Iterator[str]:
        """Yield the ids of cases that take part only because a chosen case depends on them."""
        for suite in self.suites:
            if suite.links and not self._takes_all:
                chosen = {case.id for case in self._chosen(suite)}
                yield from (case.id for case in self._cases(suite) if case.id not in chosen)

    def _chosen(self, suite: Suite) -> Iterator[Case]:
        """Return the selected cases, or those of the shard if there is one."""
        shard = self.settings.shard
        if shard is None:
            return self._selected(suite)
        start = next(start for one, start in zip(self.suites, shard.starts, strict=False) if one is suite)
        return (case for number, case in self._numbered(suite, start) if number % shard.of == shard.index - 1)

    def _numbered(self, suite: Suite, start: int) -> Iterator[tuple[int, Case]]:
        """Yield the selected cases of a suite with their numbers; cases that depend on each other share a number."""
        from agentv.engine.draws import Groups

        groups = Groups()
        for name, link in suite.links.items():
            groups.join(name, link.needs)
        numbers: dict[object, int] = {}
        number, before = start - 1, None
        for case in self._selected(suite):
            if suite.links:
                number = numbers.setdefault(groups.of(case.id), start + len(numbers))
            else:
                number += case.id != before
                before = case.id
            yield number, case

    def _selected(self, suite: Suite) -> Iterator[Case]:
        """Yield the selected cases. The entries of one case with several prompts are adjacent."""
        limit, sample, failed = self.settings.limit, self.settings.sample, self.settings.failed
        taken = 0
        before: str | None = None
        for case in self._entries(suite):
            again = case.id == before
            if limit is not None and taken >= limit and not again:
                return
            if failed is not None and not failed.contains_case(suite, case):
                continue
            if self.settings.chosen(case) and (sample is None or sample.contains(suite, case)):
                taken += not again
                before = case.id
                yield case

    def _entries(self, suite: Suite) -> Iterator[Case]:
        """Return the cases of a suite whose prompts take part."""
        if not self.settings.prompts:
            return _with_positions(suite)
        prompts = self.prompts(suite)
        return (case for case in _with_positions(suite) if case.prompt_id in prompts)

    def samples(self, suite: Suite, case: Case, target: TargetSpec, variant: Variant | None = None) -> Iterator[Trial]:
        """Yield the trials of one case on one target with one variant."""
        settings = self.settings
        threshold = _first(settings.threshold, case.threshold, suite.threshold, DEFAULT_THRESHOLD)
        default = DEFAULT_TIMEOUT_S if case.workspace is None else AGENT_TIMEOUT_S
        timeout_s = _first(settings.timeout_s, case.timeout_s, target.timeout_s, suite.run.timeout_s, default)
        limit = suite.run.cost_limit_usd
        if limit is not None and (case.conversation_id is not None or compares(case)):
            limit = None  # its samples belong together with those of other cases
        trial = Trial(
            suite,
            case,
            target,
            threshold,
            timeout_s,
            judge=judge_of(suite, case, target),
            repeat=self.repeat(suite, case.repeat),
            aggregate=suite.run.aggregate or "mean",
            alpha=None if case.show_only else self.alpha(suite),
            variant=variant,
            cost_limit_usd=limit,
        )
        key = trial_key(trial)
        for sample in range(1, trial.repeat + 1):
            yield replace(trial, sample=sample, key=f"{key}-{sample}")


def _with_positions(suite: Suite) -> Iterator[Case]:
    """Yield the cases of a suite with their positions; the entries of one case with several prompts share one."""
    position, before = 0, None
    for case in suite.cases:
        position += case.id != before
        before = case.id
        yield replace(case, position=position)


def compares(case: Case) -> bool:
    """Return whether answers to a case are compared with each other."""
    return any(getattr(entry.assertion, "compares", False) for entry in case.assertions)


def _with_dependencies(chosen: Iterable[str], suite: Suite) -> set[str]:
    """Return the ids of the chosen cases of a suite and of all their dependencies."""
    found = set(chosen)
    to_do = list(found)
    while to_do:
        link = suite.links.get(to_do.pop())
        for case in link.needs if link is not None else ():
            if case not in found:
                found.add(case)
                to_do.append(case)
    return found


def judge_of(suite: Suite, case: Case, target: TargetSpec | None) -> TargetSpec | None:
    """Return the judge for a trial's assertions that name none, in the order of SPEC section 9."""
    of_target = suite.judges.get(target.judge) if target is not None and target.judge else None
    return suite.forced_judge or case.judge or suite.judge or of_target or suite.default_judge


def trial_key(trial: Trial) -> str:
    """Return a hash of what determines the outcome of a case's samples: the case, its target, judge and threshold.

    Workers, timeouts and directories are not part of it. A trial's own key is this hash and the sample number.
    """
    suite, target, judge = trial.suite, trial.target, trial.judge
    judged_by = f"{judge.name}\0{judge.fingerprint}" if judge is not None else ""
    facts = (
        f"{suite.name}\0{trial.case.sha256}\0{target.name}\0{target.fingerprint}\0{judged_by}"
        f"\0{trial.threshold}\0{trial.repeat}\0{trial.aggregate}"
    )
    if suite.env_sha256:
        facts += f"\0{suite.env_sha256}"
    link = suite.links.get(trial.case.id) if suite.links else None
    if link is not None and link.predecessors_sha256:
        facts += f"\0{link.predecessors_sha256}"
    if trial.alpha is not None:
        facts += f"\0until decided, {trial.alpha}"
    if trial.case.prompt_id is not None:
        facts += f"\0{trial.case.prompt_id}"  # two prompts may have the same text
    limits = (suite.run.max_turns, suite.run.max_tool_calls, suite.run.on_limit)
    if limits != (None, None, None):
        facts += f"\0limits {limits}"
    if suite.run.trial_budget_usd is not None:
        facts += f"\0limit of {suite.run.trial_budget_usd} USD"
    if target.thoughts == "keep":
        facts += "\0thoughts are kept"
    if trial.variant is not None:
        facts += f"\0variant {trial.variant.sha256}"
    return hashlib.sha256(facts.encode(errors="surrogatepass")).hexdigest()


def _first(*values: float | None) -> float:
    for value in values:
        if value is not None:
            return value
    raise ValueError("the last of the values is a default")
