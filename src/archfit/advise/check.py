"""The experiment that could refute a plan: made to fit the time, run, and found again.

The design is written before the first run, so that a check which was stopped goes on with the
runs it had begun, on whatever machine.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from archfit.advise import design as designing
from archfit.advise.design import CheckCell, Design, Speed, check_cells, networks
from archfit.data.prepared import PreparedData, open_prepared
from archfit.data.retokenise import AsGiven, retokenised
from archfit.fit.noise import LEAST_DEGREES
from archfit.plan.planner import Plan
from archfit.spec import RunRecord, RunSpec, canonical_json, loads, open_regular
from archfit.spec.files import SWEEP, read_record, write_whole
from archfit.sweep.folder import locked, open_sweep, read_sweep, write_results
from archfit.sweep.local import DeviceSlot, run_here
from archfit.sweep.runner import CellQueue, RunnerOptions, SweepWatcher
from archfit.sweep.sweep import Corpus, Scale, Sweep, seeded

DESIGN = "design.json"
LARGEST_DESIGN = 100_000  # bytes
NAME = "advise-check"
QUESTION = "Does the recommended network beat its rivals of equal size on this data?"
MOST_SEEDS = 8
LEAST_SEEDS = 3  # two cells of two seeds each say too little about noise
PILOT_STEPS = 24
CONTEXTS = {"smoke": 64, "small": 256}  # at most; a check looks at shapes, not at long memory
# Where a pilot starts from: one core, or one large GPU.
ASSUMED = {
    "smoke": Speed(seconds_a_layer=1e-3, flops_per_second=3e10),
    "small": Speed(seconds_a_layer=6e-4, flops_per_second=5e13),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckRunner:
    """Where a check is run, and who watches."""

    folder: Path
    device: str
    where: Callable[[], list[DeviceSlot]]  # anew for each runner
    watch: SweepWatcher

    @property
    def on_gpu(self) -> bool:
        """Whether runs have a GPU."""
        return any(slot.gpu is not None for slot in self.where())

    def run(self, specs: tuple[RunSpec, ...], folder: Path, data: tuple[Path, ...]) -> CellQueue:
        """Train what is not done yet."""
        cells = CellQueue(specs, folder)
        if not cells.all_done:
            options = RunnerOptions(
                out=folder.resolve(), data_folders=data, device=self.device, threads=1,
                checkpoint_seconds=60.0,
            )  # fmt: skip
            run_here(cells, options, self.where(), self.watch, wait=True)
        return cells


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckRuns:
    """The runs of a check: what was planned, what came out, and what failed."""

    design: Design
    cells: tuple[CheckCell, ...]
    records: tuple[RunRecord, ...]
    failures: Mapping[str, str]  # why, by the name of the run
    left_out: Mapping[str, str]  # repairs whose data could not be had, and why
    data: Mapping[str, str]  # labels by hash

    def of(self, cell: CheckCell, status: str = "finished") -> tuple[RunRecord, ...]:
        """The runs of a cell that ended so."""
        ended = ((record.spec, record) for record in self.records if record.status == status)
        return tuple(r for spec, r in ended if (spec.architecture, spec.data_hash) == cell.key)


def trained_check(
    plan: Plan, data: PreparedData, runner: CheckRunner, *, minutes: float, seeds: int | None
) -> CheckRuns:
    """The check in the runner's folder, designed now or before, with all its runs."""
    runner.folder.mkdir(parents=True, exist_ok=True)
    design = _design(plan, data, runner, minutes)
    prepared, left_out = _prepared(plan, data, design, runner.folder)
    cells = check_cells(plan, design, _corpora(prepared))
    refuse_too_few(cells, LEAST_SEEDS if seeds is None else seeds)
    failures = _train(runner, cells, minutes=minutes, seeds=seeds)
    return replace(read_check(plan, data, runner.folder), failures=failures, left_out=left_out)


def read_check(plan: Plan, data: PreparedData, folder: Path) -> CheckRuns:
    """The check as it lies in its folder; nothing is trained."""
    design = _read_design(folder / DESIGN)
    labels = {network.tokens.label: network.tokens for network in networks(plan, design.share)}
    found = {
        label: data if isinstance(tokens, AsGiven) else open_prepared(folder / "data" / label)
        for label, tokens in labels.items()
        if isinstance(tokens, AsGiven) or (folder / "data" / label).is_dir()
    }
    corpora = _corpora(found)
    records = {spec.name: read_record(folder / spec.name) for spec in _stored(folder)}
    return CheckRuns(
        design=design,
        cells=check_cells(plan, design, corpora),
        records=tuple(record for record in records.values() if record is not None),
        failures={name: "it left no record" for name, found in records.items() if found is None},
        left_out={label: "its data could not be had" for label in labels if label not in corpora},
        data={corpus.hash: corpus.label for corpus in corpora.values()},
    )


def refuse_too_few(cells: tuple[CheckCell, ...], seeds: int) -> None:
    """Refuse what could say nothing, before it is trained."""
    compared = len({cell.network for cell in cells})
    if compared < 2:
        raise ValueError(
            "the recommended network has no rival of other depth and no repair that could be "
            "checked; use a larger --max-depth or --params, or leave --check out"
        )
    least = math.ceil(LEAST_DEGREES / compared) + 1
    if seeds < least:
        raise ValueError(
            f"seeds={seeds} of {compared} networks say too little about noise; use --seeds {least}"
        )


def _corpora(prepared: Mapping[str, PreparedData]) -> dict[str, Corpus]:
    return {
        label: Corpus(
            label=label,
            kind=str(data.description["kind"]),
            vocab=data.vocab,
            hash=data.data_hash,
            folder=str(data.folder.resolve()),
        )
        for label, data in prepared.items()
    }


def _design(plan: Plan, data: PreparedData, runner: CheckRunner, minutes: float) -> Design:
    """The design in the folder; where there is none, one for what a pilot measures.

    Two who want the same check at once agree on one design: the second waits for the first.
    """
    path = runner.folder / DESIGN
    with locked(runner.folder):
        if not path.exists():
            design = _fitting_design(plan, data, runner, minutes)
            write_whole(path, (canonical_json(design) + "\n").encode())
    return _read_design(path)


def _fitting_design(plan: Plan, data: PreparedData, runner: CheckRunner, minutes: float) -> Design:
    scale: Scale = "small" if runner.on_gpu else "smoke"
    sizes = designing.SIZES
    start = Design(
        share=1.0,
        steps=designing.STEPS[0],
        sizes=sizes if minutes >= designing.SEVERAL_SIZES else sizes[:1],
        scale=scale,
        context=min(plan.request.context, CONTEXTS[scale]),
    )
    seconds, workers, assumed = 60 * minutes, len(runner.where()), ASSUMED[scale]

    def fitting(speed: Speed) -> Design:
        return designing.affordable(
            plan, seconds=seconds, speed=speed, start=start, workers=workers
        )

    return fitting(assumed.slowed(_slowness(plan, data, runner, fitting(assumed))))


def _read_design(path: Path) -> Design:
    try:
        with open_regular(path) as file:
            return loads(Design, file.read(LARGEST_DESIGN).decode())
    except ValueError as problem:
        raise ValueError(f"{path} holds no design: {problem}; delete its folder") from problem


def _slowness(plan: Plan, data: PreparedData, runner: CheckRunner, design: Design) -> float:
    """How many times as long as assumed a few steps of the first networks take here."""
    speed = ASSUMED[design.scale]
    given = [network for network in networks(plan, design.share) if network.role != "repaired"]
    options = [
        replace(
            design.options(network, 1.0), steps=PILOT_STEPS, warmup=1, evaluate_every=PILOT_STEPS,
            evaluation_sequences=1,
        )
        for network in given
    ]  # fmt: skip
    specs = (o.spec(vocab=data.vocab, data_hash=data.data_hash, seed=0) for o in options)
    pilots = tuple(dict.fromkeys(specs))
    folder = runner.folder / "pilot"
    done = runner.run(pilots, folder, (data.folder,))
    records = [read_record(folder / spec.name) for spec in pilots]
    measured = sum(record.timing.training_seconds for record in records if record)
    assumed = sum(speed.seconds(record.spec) for record in records if record)
    if not measured:
        why = next(iter(done.failed.values()), "nothing was said")
        raise ValueError(
            f"no network of the check could be trained for {PILOT_STEPS} steps: {why}; leave "
            "--check out, or use another --device"
        )
    return measured / assumed


def _prepared(
    plan: Plan, data: PreparedData, design: Design, folder: Path
) -> tuple[dict[str, PreparedData], dict[str, str]]:
    """The data in every vocabulary that the networks read, and why some cannot be had."""
    found, left_out = {}, {}
    for network in networks(plan, design.share):
        label = network.tokens.label
        if label in found or label in left_out:
            continue
        try:
            found[label] = retokenised(data, folder / "data" / label, network.tokens)
        except ValueError as problem:
            left_out[label] = str(problem)
    return found, left_out


def _train(
    runner: CheckRunner, cells: tuple[CheckCell, ...], *, minutes: float, seeds: int | None
) -> dict[str, str]:
    """Train one seed, then as many as the time allows; why runs failed, by their names."""
    corpora = tuple({cell.cell.corpus.hash: cell.cell.corpus for cell in cells}.values())
    failures: dict[str, str] = {}

    def pass_of(seeds: int) -> None:
        specs = seeded([cell.cell for cell in cells], range(seeds))
        wanted = Sweep(name=NAME, scale="check", question=QUESTION, data=corpora, specs=specs)
        opened = open_sweep(runner.folder, wanted)
        data = tuple(Path(corpus.folder) for corpus in corpora)
        done = runner.run(opened.specs, runner.folder, data)
        failures.update({spec.name: reason for spec, reason in done.failed.items()})
        write_results(runner.folder, opened)

    if seeds is not None:
        pass_of(seeds)
        return failures
    pass_of(1)
    there = _stored(runner.folder)
    trained = len({spec.seed for spec in there})
    if trained < LEAST_SEEDS:
        records = [read_record(runner.folder / spec.name) for spec in there]
        training = sum(record.timing.training_seconds for record in records if record)
        a_seed = training / trained / len(runner.where())
        pass_of(affordable_seeds(a_seed, 60 * minutes))
    return failures


def affordable_seeds(seconds_a_seed: float, seconds: float) -> int:
    """Seeds that 95 % of the time pays for; the rest is spent on starting workers."""
    paid = int(0.95 * seconds / max(seconds_a_seed, 1e-3))
    return max(LEAST_SEEDS, min(MOST_SEEDS, paid))


def _stored(folder: Path) -> tuple[RunSpec, ...]:
    return read_sweep(folder / SWEEP).specs
