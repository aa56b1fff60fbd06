"""Kinds of witnesses: what each takes, and the weights, inputs and promise that it makes.

A base or simplified witness makes a power of the inner product of two vectors, one a side. Behind
an embedding of low rank, a convolution or a table of tokens, only the first n' = floor((r - H) / 2)
coordinates of the halves are used, so that the templates live in few dimensions. Over a small
vocabulary sequences spell their vectors, integer points of equal norm, by repeating tokens: token
1 + c adds 1 to coordinate c of the row halves, token 1 + d + c to the column halves, token 0 is the
filler; layer 1 adds up all positions, so a sequence stands for the sum of its tokens.

Source: Wies et al. 2021, lemmas 5 to 8, with their indices corrected; `witness_network` has those
of the weights.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from archfit.exact.prime_field import (
    WITNESS_PRIME,
    check_witness_prime,
    residue_product,
    root_of_minus_one,
)
from archfit.exact.witness_network import (
    MOST_ROWS,
    NetworkShape,
    base_network,
    chain_network,
    filler,
    monomial_network,
    simplified_network,
    templates,
    unit_rows,
)
from archfit.exact.witness_promise import (
    ChainProduct,
    MomentMonomial,
    PowersOfNorms,
    Witness,
    promised_power,
)
from archfit.spec.errors import InvalidValue, check_at_least, check_choice
from archfit.theory.arithmetic import multiset
from archfit.theory.causal_bounds import causal_chain_lower_bound, chain_layers
from archfit.theory.continuous_bounds import (
    doubled_degree,
    lower_bound,
    sphere_lower_bound,
    strong_lower_bound,
)
from archfit.theory.vocabulary_bounds import (
    long_sequence_lower_bound,
    positions_needed,
    smallest_full_rank_sphere,
    vocabulary_lower_bound,
    vocabulary_needed,
)
from archfit.theory.witness_formula import (
    Plan,
    check_plan,
    final_exponents,
    grow_plan,
    monomial_witness,
)

if TYPE_CHECKING:
    import numpy as np

    from archfit.exact.prime_field import Residues
else:
    from archfit.spec import lazy_numpy as np

MOST_MULTIPLICATIONS = 3 * 10**9  # of all runs: 10 to 25 s
MOST_TOKENS = 20_000
MOST_PATCH_NUMBERS = 2000
SURPLUS = 6  # samples beyond the promised rank, so that a larger one would show
FEW_SAMPLES = 30  # where the rank is too large to be measured, and only values are compared
_POSITIONS = 4  # two a side: a template and a filler
_PATCH = 2
_PLANS_GROWN, _MANY_HEADS = 20, 8  # a plan for more heads takes long to grow


@dataclass(frozen=True, kw_only=True, slots=True)
class WitnessRequest:
    """The witness that is asked for; None leaves a size to its kind."""

    kind: str
    depth: int
    width: int
    heads: int
    positions: int | None = None
    rank: int | None = None
    vocab: int | None = None
    patch: int | None = None
    channels: int | None = None
    plan: Plan | None = None
    entry: int | None = None
    chains: int | None = None
    causal: bool = False

    def __post_init__(self) -> None:
        check_choice(list(KINDS), kind=self.kind)
        for name in sorted({name for options, _ in KINDS.values() for name in options}):
            is_given = getattr(self, name) is not None and getattr(self, name) is not False
            if is_given and name not in KINDS[self.kind][0]:
                takers = " or ".join(
                    kind for kind, (options, _) in KINDS.items() if name in options
                )
                raise ValueError(f"the {self.kind} kind takes no {name}; use --kind {takers}")

    def shape(self, positions: int = _POSITIONS) -> NetworkShape:
        """The network, with this length unless another was asked for."""
        return NetworkShape(
            depth=self.depth,
            width=self.width,
            heads=self.heads,
            positions=positions if self.positions is None else self.positions,
        )


def build_witness(request: WitnessRequest, *, prime: int = WITNESS_PRIME) -> Witness:
    """The weights and inputs that are asked for, modulo the prime.

    Where nothing was said of a size, it is the smallest that the kind allows.
    """
    check_witness_prime(prime)
    return KINDS[request.kind][1](request, prime)


def _base(request: WitnessRequest, prime: int) -> Witness:
    """The base witness, which reaches `lb`: one template a row and column."""
    shape = request.shape()
    shape.check_halves()
    shape.check_fits(shape.heads * shape.half)
    vectors = _unit_vectors(shape, shape.heads * shape.half, prime)
    inputs = [_side(shape, chosen) for chosen in _both_halves(shape, vectors)]
    bound = lower_bound(shape.depth, shape.width, shape.heads)
    return _power("base", shape, prime, vectors, inputs, bound_id="lb", bound=bound)


def _simplified(request: WitnessRequest, prime: int) -> Witness:
    """The simplified witness, which reaches `lb_strong`."""
    shape, J = request.shape(), root_of_minus_one(prime)
    _check_constant(shape)
    shape.check_fits(shape.width - shape.heads)
    vectors = _unit_vectors(shape, shape.width - shape.heads, prime)
    free = shape.places(0, shape.head_dim - 1)
    inputs = [_side(shape, templates(shape, factor * vectors % prime, free)) for factor in (1, J)]
    bound = strong_lower_bound(shape.depth, shape.width, shape.heads)
    return _power("simplified", shape, prime, vectors, inputs, bound_id="lb_strong", bound=bound)


def _sphere(request: WitnessRequest, prime: int) -> Witness:
    """The witness of `lb_sphere`: random vectors, and a few more of them than its rank."""
    shape = request.shape()
    _check_constant(shape)
    shape.check_run()
    bound = sphere_lower_bound(shape.depth, shape.width, shape.heads)
    shape.check_rows(bound + SURPLUS, "of this width", "use less depth, less width or more heads")
    free = shape.places(0, shape.head_dim - 1)
    size = (bound + SURPLUS, len(free))
    drawn = (np.random.default_rng(seed).integers(0, prime, size) for seed in (1, 2))
    inside, outside = (_side(shape, templates(shape, vectors, free)) for vectors in drawn)
    return Witness(
        kind="sphere",
        shape=shape,
        prime=prime,
        network=simplified_network(shape, prime, share=False),
        inside=inside,
        outside=outside,
        promise=PowersOfNorms(
            formula=f"a polynomial of degree 3^{shape.depth - 2} in |a|^2, <a, b>, |b|^2",
            depth=shape.depth,
            free=free,
            causal=request.causal,
        ),
        expected_rank=bound,
        bound_id="lb_sphere",
        bound=bound,
        inputs=asdict(shape) | {"causal": request.causal},
        output=shape.positions - 1,
        causal=request.causal,
    )


def _chain(request: WitnessRequest, prime: int) -> Witness:
    """The witness of `lb_causal_chain`; the prefix is inside."""
    chains = 1 if request.chains is None else request.chains
    check_at_least(1, chains=chains)
    request.shape()
    layers = chain_layers(request.depth, min(chains, MOST_ROWS))
    shape = request.shape(2 * layers)
    shape.check_run()
    if min(shape.width, shape.heads) <= 4 * chains:
        rule = f"are fewer than the {4 * chains + 1} that {{chains}}={chains} take"
        raise InvalidValue("heads", shape.heads, rule, f"use {4 * chains + 1} of them or more")
    if shape.side < layers:
        rule = f"leaves {shape.side} on a side, and {layers} layers of a chain need as many"
        raise InvalidValue("positions", shape.positions, rule, f"use {2 * layers} or more")
    bound = causal_chain_lower_bound(shape.depth, chains)
    shape.check_rows(bound + SURPLUS, f"with {{chains}}={chains}", "use less depth or fewer chains")
    inside, outside = np.zeros((2, bound + SURPLUS, shape.width, shape.side), np.int64)
    for place, samples in ((1, inside), (2, outside)):
        size = (len(samples), chains, shape.side)
        drawn = np.random.default_rng(place).integers(0, prime, size)
        samples[:, place : 4 * chains : 4] = drawn
    outside[:, :, -1] = 0
    constants = [0, *(at for k in range(chains) for at in (3 + 4 * k, 4 + 4 * k))]
    outside[:, constants, -1] = 1
    return Witness(
        kind="causal-chain",
        shape=shape,
        prime=prime,
        network=chain_network(shape, chains),
        inside=inside,
        outside=outside,
        promise=ChainProduct(
            formula=f"the product of {chains} x prod_l (t_l + b_l)^(2^({layers - 2} - l))",
            chains=chains,
            layers=layers,
        ),
        expected_rank=bound,
        bound_id="lb_causal_chain",
        bound=bound,
        inputs=asdict(shape) | {"chains": chains},
        entry=3,
        output=shape.positions - 1,
        causal=True,
    )


def _convolution(request: WitnessRequest, prime: int) -> Witness:
    """The base weights behind a kernel that spreads each patch over the active coordinates."""
    shape, r = request.shape(), request.rank or request.width
    patch, active = request.patch, _active_coordinates(shape, r)
    patch = _PATCH if patch is None else patch
    channels = -(-len(active) // max(1, patch)) if request.channels is None else request.channels
    check_at_least(1, patch=patch, channels=channels)
    held = patch * channels
    rule = f"with {{channels}}={channels} holds {held} numbers, "
    if held < len(active):
        rule += f"and an embedding of rank {len(active)} needs as many"
        raise InvalidValue("patch", patch, rule, f"use {{channels}}={-(-len(active) // patch)}")
    if held > MOST_PATCH_NUMBERS:
        rule += f"over the {MOST_PATCH_NUMBERS} of a patch here"
        raise InvalidValue("patch", patch, rule, f"{len(active)} are enough")
    vectors = _unit_vectors(shape, used_columns(shape, r), prime)
    kernel = np.zeros((shape.width, held), np.int64)
    kernel[active, range(len(active))] = 1

    def embedded(x_BDN: "Residues") -> "Residues":
        """The same samples, from the numbers of the patches that the kernel makes them of."""
        patches = np.zeros((len(x_BDN), held, shape.side), np.int64)
        patches[:, : len(active)] = x_BDN[:, active]
        return residue_product(kernel, patches, prime)

    inputs = [embedded(_side(shape, chosen)) for chosen in _both_halves(shape, vectors)]
    more = _embedding(shape, r, kernel, len(active), patch=patch, channels=channels)
    return _power("convolution", shape, prime, vectors, inputs, **more)


def _vocabulary(request: WitnessRequest, prime: int) -> Witness:
    """The base weights over a table of row templates, column templates and the filler."""
    shape, r = request.shape(), request.rank or request.width
    columns = used_columns(shape, r)
    needed = vocabulary_needed(shape.depth, shape.width, shape.heads, r)
    vocab = _checked_vocab(request.vocab, needed)
    vectors = _unit_vectors(shape, columns, prime)
    table = np.repeat(filler(shape), vocab, axis=1)
    table[:, : 2 * len(vectors)] = np.concatenate(_both_halves(shape, vectors)).T
    tokens = np.full((2 * len(vectors), shape.side), 2 * len(vectors))
    tokens[:, 0] = range(len(tokens))
    inputs = np.split(_looked_up(table, tokens), 2)
    # The constants are equal rows of the table.
    more = _embedding(shape, r, table, 2 * columns + 1, vocab=vocab)
    return _power("vocabulary", shape, prime, vectors, inputs, **more)


def _long_vocabulary(request: WitnessRequest, prime: int) -> Witness:
    """The base weights over 2 d + 1 one-hot tokens, d = floor((r - 1 - H) / 2), and sequences.

    A point takes E places a coordinate, of which as many hold its token as its value says. `rank`
    is the papers' r, which counts the H equal constants; the table has rank 2 d + 1 only, so r may
    exceed the width by one.
    """
    r = request.rank or request.width + 1
    d = _spelled_columns(request.shape(), r)
    needed = positions_needed(request.depth, request.heads, r)
    shape = request.shape(needed)
    shape.check_run()
    if shape.positions < needed:
        way_out = f"use {{positions}}={needed} or more"
        raise InvalidValue("positions", shape.positions, "cannot spell every vector", way_out)
    vocab = _checked_vocab(request.vocab, 2 * d + 1)
    sphere = smallest_full_rank_sphere(d, doubled_degree(shape.depth))
    points, E = np.array(sphere.points), sphere.largest_entry
    table = np.repeat(filler(shape), vocab, axis=1)
    one_hots = _both_halves(shape, np.eye(d, dtype=np.int64))
    table[:, 1 : 1 + 2 * d] = np.concatenate(one_hots).T
    places = np.arange(E) < points[:, :, None]

    def spelled(first: int) -> "Residues":
        tokens = np.zeros((len(points), shape.side), np.int64)
        own = places * np.arange(first, first + d)[:, None]
        tokens[:, : d * E] = own.reshape(len(points), -1)
        return _looked_up(table, tokens)

    more = _embedding(shape, r, table, 2 * d + 1, is_long=True, vocab=vocab)
    inputs = [spelled(1), spelled(1 + d)]
    return _power("vocabulary-long", shape, prime, points, inputs, **more)


def _monomial(request: WitnessRequest, prime: int) -> Witness:
    """The monomial of a plan, that which was given or the best of a few that are grown.

    Inputs are random: more than the promised rank where it can be measured.
    """
    shape = request.shape(2 * request.heads)
    shape.check_run()
    plan, entry, sizes = request.plan, 0, (shape.depth, shape.width, shape.heads)
    if plan is None:
        tries = _PLANS_GROWN if shape.heads <= _MANY_HEADS else 1
        plans = (grow_plan(shape.depth, shape.heads, seed=seed) for seed in range(tries))
        plan, entry = max(plans, key=lambda found: monomial_witness(*sizes, *found))
    entry = entry if request.entry is None else request.entry
    check_plan(*sizes, plan, entry)
    if shape.side < shape.heads:
        rule = (
            f"leaves {shape.side} on a side, and the moments of {shape.heads} heads are "
            f"independent from {shape.heads}"
        )
        way_out = f"use {{positions}}={2 * shape.heads} or more"
        raise InvalidValue("positions", shape.positions, rule, way_out)
    expected = monomial_witness(*sizes, plan, entry)
    wanted = expected + SURPLUS
    fits = wanted <= MOST_ROWS and wanted**2 * shape.multiplications <= MOST_MULTIPLICATIONS
    size = (wanted if fits else FEW_SAMPLES, shape.width, shape.side)
    inside, outside = (np.random.default_rng(seed).integers(0, prime, size) for seed in (1, 2))
    return Witness(
        kind="monomial",
        shape=shape,
        prime=prime,
        network=monomial_network(shape, plan),
        inside=inside,
        outside=outside,
        promise=MomentMonomial(
            formula="x_h prod S_ab^E_ab, S = X X^T",
            exponents=tuple(tuple(final_exponents(*sizes, plan, h)) for h in range(shape.heads)),
        ),
        entry=entry,
        expected_rank=expected,
        bound_id="monomial_witness",
        bound=expected,
        inputs=asdict(shape) | {"plan": plan, "entry": entry},
    )


# Each kind: the options that it takes besides depth, width, heads and positions, and its builder.
KINDS: dict[str, tuple[tuple[str, ...], Callable[[WitnessRequest, int], Witness]]] = {
    "base": ((), _base),
    "simplified": ((), _simplified),
    "convolution": (("rank", "patch", "channels"), _convolution),
    "vocabulary": (("rank", "vocab"), _vocabulary),
    "vocabulary-long": (("rank", "vocab"), _long_vocabulary),
    "monomial": (("plan", "entry"), _monomial),
    "sphere": (("causal",), _sphere),
    "causal-chain": (("chains",), _chain),
}


def _checked_vocab(vocab: int | None, needed: int) -> int:
    """The tokens asked for; too few are refused, and so many copies that they fill memory."""
    vocab = needed if vocab is None else vocab
    if not needed <= vocab <= MOST_TOKENS:
        rule = (
            f"is not in {needed}..{MOST_TOKENS}: this witness uses {needed} tokens and the others "
            "change nothing"
        )
        raise InvalidValue("vocab", vocab, rule, f"use {{vocab}}={needed}")
    return vocab


def _check_constant(shape: NetworkShape) -> None:
    """Refuse heads that have no coordinate besides their constant."""
    doubled_degree(shape.depth)
    shape.check_depth()
    if shape.head_dim < 2:
        rule = (
            f"with {{heads}}={shape.heads} makes heads of dimension 1, and this witness needs "
            "a constant and one more"
        )
        way_out = f"use {{width}}={2 * shape.heads}, or the monomial kind"
        raise InvalidValue("width", shape.width, rule, way_out)


def used_columns(shape: NetworkShape, embedding_rank: int) -> int:
    """n' = floor((r - H) / 2), refused where nothing is left of it."""
    shape.check_halves()
    columns = (embedding_rank - shape.heads) // 2
    if columns < 1:
        rule = f"with {{heads}}={shape.heads} leaves no coordinate to the vectors"
        way_out = f"use {shape.heads + 2} or more"
        raise InvalidValue("embedding_rank", embedding_rank, rule, way_out)
    shape.check_fits(columns)
    vocabulary_lower_bound(shape.depth, shape.width, shape.heads, embedding_rank)
    return columns


def _spelled_columns(shape: NetworkShape, embedding_rank: int) -> int:
    """d = floor((r - 1 - H) / 2), refused where it is zero or more than the halves hold."""
    shape.check_halves()
    d = (embedding_rank - 1 - shape.heads) // 2
    shape.check_fits(max(1, d))
    long_sequence_lower_bound(shape.depth, shape.heads, embedding_rank)
    if d > shape.heads * shape.half:
        most = shape.width + 1
        rule = f"is over {most}, which fills {{width}}={shape.width}"
        raise InvalidValue("embedding_rank", embedding_rank, rule, f"use {most} or less")
    return d


def _active_coordinates(shape: NetworkShape, embedding_rank: int) -> list[int]:
    """The coordinates that templates use, in order: the constants and n' of either half."""
    columns, hd = used_columns(shape, embedding_rank), shape.half
    constants = shape.places(2 * hd, shape.head_dim)
    return sorted([*constants, *shape.places(0, hd)[:columns], *shape.places(hd, 2 * hd)[:columns]])


def _unit_vectors(shape: NetworkShape, dimension: int, prime: int) -> "Residues":
    """As many as there are forms of degree 3^(L-2) in so many variables: the expected rank."""
    return unit_rows(multiset(dimension, doubled_degree(shape.depth)), dimension, prime)


def _both_halves(shape: NetworkShape, vectors: "Residues") -> list["Residues"]:
    """The templates with these vectors in the row halves, and those in the column halves."""
    hd = shape.half
    return [templates(shape, vectors, shape.places(at, at + hd)) for at in (0, hd)]


def _side(shape: NetworkShape, chosen: "Residues") -> "Residues":
    """Samples (B, D, N): one of the chosen vectors first, the filler at all other positions."""
    samples = np.tile(filler(shape), (len(chosen), 1, shape.side))
    samples[:, :, 0] = chosen
    return samples


def _looked_up(table: "Residues", tokens: "Residues") -> "Residues":
    return table[:, tokens].transpose(1, 0, 2)


def _embedding(
    shape: NetworkShape,
    r: int,
    embedding: "Residues",
    rank: int,
    *,
    is_long: bool = False,
    **sizes: int,
) -> dict[str, Any]:
    """What a witness behind this embedding, of the papers' rank r, has more than the base one."""
    bound = (
        long_sequence_lower_bound(shape.depth, shape.heads, r)
        if is_long
        else vocabulary_lower_bound(shape.depth, shape.width, shape.heads, r)
    )
    return {
        "bound_id": "lb_vocab_long" if is_long else "lb_vocab",
        "bound": bound,
        "embedding": embedding,
        "expected_embedding_rank": rank,
        "inputs": asdict(shape) | {"embedding_rank": r} | sizes,
    }


def _power(
    kind: str,
    shape: NetworkShape,
    prime: int,
    vectors: "Residues",
    sides: Sequence["Residues"],
    **more: Any,
) -> Witness:
    """The simplified or the base weights with these inputs, inside and outside."""
    (inside, outside), has_halves = sides, kind != "simplified"
    return Witness(
        kind=kind,
        shape=shape,
        prime=prime,
        network=(base_network if has_halves else simplified_network)(shape, prime),
        inside=inside,
        outside=outside,
        promise=promised_power(shape, vectors, prime, has_halves=has_halves),
        expected_rank=len(vectors),
        **({"inputs": asdict(shape)} | more),
    )
