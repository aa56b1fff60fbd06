"""Plans and checks that tests of advice ask about."""

from collections.abc import Mapping

from archfit.advise.check import CheckRuns
from archfit.advise.design import CheckCell, Design, check_cells

from archfit.advise.plan_request import DataFacts, PlanRequest, TotalParams, VocabularySize
from archfit.advise.planner import Plan, make_plan
from archfit.spec import Evaluation, Machine, RunRecord, RunSpec, Timing
from archfit.sweep.sweep import Corpus

USED = {"fasta": 24, "text": 80, "images": 17, "bytes": 257, "series": 33}


def plan_of(
    kind: str,
    params: int = 5_000_000,
    used: int | None = None,
    max_depth: int = 128,
    context: int = 256,
) -> Plan:
    """A plan for data of this kind, whose tokens all occur."""
    used = USED[kind] if used is None else used
    return make_plan(
        PlanRequest(
            budget=TotalParams(params=params),
            vocabulary=VocabularySize(size=used, used=used),
            rank=None,
            patch=None,
            context=context,
            is_tied=False,
            max_depth=max_depth,
            multiple_of=None,
            tokens_per_param=20,
            data=DataFacts(
                folder="d",
                source="s",
                knows_path=True,
                kind=kind,
                tokens=10**7,
                cooccurrence_rank=9,
            ),
        )
    )


def design(share: float) -> Design:
    return Design(share=share, steps=200, sizes=(1.0,), scale="smoke", context=64)


def made_check(plan: Plan, share: float, bits: Mapping[str, tuple[float, ...]]) -> CheckRuns:
    """A check whose networks, by name, ended with these bits per byte, one for each seed."""
    corpora = {
        label: Corpus(label=label, kind="fasta", vocab=vocab, hash=f"{vocab:064x}", folder="")
        for label, vocab in (("as given", 24), ("kmer-2", 529), ("bpe-512", 512))
    }
    cells = check_cells(plan, design(share), corpora)
    records = [
        record_of(one, seed, loss)
        for one in cells
        for seed, loss in enumerate(bits.get(one.network.name, ()))
    ]
    return CheckRuns(
        design=design(share),
        cells=cells,
        records=tuple(records),
        failures={},
        left_out={},
        data={corpus.hash: corpus.label for corpus in corpora.values()},
    )


def record_of(one: CheckCell, seed: int, bits: float) -> RunRecord:
    """A run of the cell that ended with these bits per byte."""
    spec: RunSpec = one.cell.spec(seed)
    evaluations = [
        Evaluation(
            step=step,
            training_nats_per_token=bits,
            heldout_nats_per_token=2 * (bits + more),
            heldout_bits_per_byte=bits + more,
        )
        for step, more in ((100, 0.5), (200, 0.0))
    ]
    return RunRecord(
        spec=spec,
        status="finished",
        diverged_at_step=None,
        evaluations=tuple(evaluations),
        full_context=None,
        timing=Timing(training_seconds=1.0, tokens_per_second=1.0, flop_utilisation=None),
        machine=Machine(
            device="cpu", devices=1, micro_batch_sequences=1, archfit="0", python="3", torch="2"
        ),
    )
