"""Kinds of witnesses: what each takes, and the weights, inputs and promise that it makes.

A base or simplified witness makes a power of the inner product of two vectors, one a side. Behind
an embedding of low rank, a convolution or a table of tokens, only the first n' = floor((r - H) / 2)
coordinates of the halves are used, so that the templates live in few dimensions. Over a small
vocabulary sequences spell their vectors, integer points of equal norm, by repeating tokens: token
1 + c adds 1 to coordinate c of the row halves, token 1 + d + c to the column halves, token 0 is the
filler; layer 1 adds up all positions, so a sequence stands for the sum of its tokens.
Source: Wies et al. 2021, lemmas 5 to 8, with their indices corrected.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from archfit.exact import witness as promises
from archfit.exact import witness_network as weights
from archfit.exact.prime_field import (
    WITNESS_PRIME,
    Residues,
    check_witness_prime,
    root_of_minus_one,
)
from archfit.exact.witness import Promise, Witness
from archfit.exact.witness_network import MOST_ROWS, NetworkShape
from archfit.spec import lazy_numpy as np
from archfit.spec.errors import check_at_least, check_choice, refusal, refuse_if
from archfit.theory import continuous_bounds as continuous
from archfit.theory import vocabulary_bounds as vocabulary
from archfit.theory import witness_formula as explicit
from archfit.theory.catalogue import ENTRIES

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
    plan: explicit.Plan | None = None
    entry: int | None = None
    chains: int | None = None
    causal: bool = False

    def __post_init__(self) -> None:
        check_choice(list(KINDS), kind=self.kind)
        for name in sorted({name for kind in KINDS.values() for name in kind.takes}):
            is_given = getattr(self, name) is not None and getattr(self, name) is not False
            takers = [kind for kind, about in KINDS.items() if name in about.takes]
            is_bad, said = is_given and self.kind not in takers, " or ".join(takers)
            refuse_if(is_bad, "kind-takes-none", kind=self.kind, name=name, takers=said)

    def shape(self, positions: int = _POSITIONS) -> NetworkShape:
        """The network, with this length unless another was asked for."""
        N = positions if self.positions is None else self.positions
        return NetworkShape(depth=self.depth, width=self.width, heads=self.heads, positions=N)


def build_witness(request: WitnessRequest, *, prime: int = WITNESS_PRIME) -> Witness:
    """The weights and inputs that are asked for, modulo the prime.

    Where nothing was said of a size, it is the smallest that the kind allows.
    """
    check_witness_prime(prime)
    return KINDS[request.kind].build(request, prime)


def _base(request: WitnessRequest, prime: int) -> Witness:
    """The base witness, which reaches `lb`: one template a row and column."""
    shape = request.shape()
    shape.check_halves()
    shape.check_fits(shape.heads * shape.half)
    vectors = weights.unit_vectors(shape, shape.heads * shape.half, prime)
    inputs = [weights.side(shape, chosen) for chosen in weights.both_halves(shape, vectors)]
    return _witness(request, shape, prime, inputs, vectors)


def _simplified(request: WitnessRequest, prime: int) -> Witness:
    """The simplified witness, which reaches `lb_strong`."""
    shape, J = request.shape(), root_of_minus_one(prime)
    _check_constant(shape)
    shape.check_fits(shape.width - shape.heads)
    vectors = weights.unit_vectors(shape, shape.width - shape.heads, prime)
    free = shape.places(0, shape.head_dim - 1)
    turned = (vectors, J * vectors % prime)
    inputs = [weights.side(shape, weights.templates(shape, each, free)) for each in turned]
    return _witness(request, shape, prime, inputs, vectors)


def _sphere(request: WitnessRequest, prime: int) -> Witness:
    """The witness of `lb_sphere`: random vectors, and a few more of them than its rank."""
    shape = request.shape()
    _check_constant(shape)
    shape.check_run()
    bound = int(continuous.sphere_lower_bound(shape.depth, shape.width, shape.heads))
    shape.check_rows(bound + SURPLUS, "of this width", "use less depth, less width or more heads")
    free, causal = shape.places(0, shape.head_dim - 1), request.causal
    size = (bound + SURPLUS, len(free))
    drawn = (np.random.default_rng(seed).integers(0, prime, size) for seed in (1, 2))
    sides = [weights.side(shape, weights.templates(shape, vectors, free)) for vectors in drawn]
    network = weights.simplified_network(shape, prime, share=False)
    formula = f"a polynomial of degree 3^{shape.depth - 2} in |a|^2, <a, b>, |b|^2"
    outputs = partial(promises.powers_of_norms, shape.depth, free, causal, prime)
    promise = Promise(formula=formula, outputs=outputs)
    more: dict[str, Any] = {"sizes": {"causal": causal}, "causal": causal}
    return _witness(request, shape, prime, sides, network=network, promise=promise, **more)


def _chain(request: WitnessRequest, prime: int) -> Witness:
    """The witness of `lb_causal_chain`; the prefix is inside."""
    chains = 1 if request.chains is None else request.chains
    check_at_least(1, chains=chains)
    request.shape()
    layers = explicit.chain_layers(request.depth, min(chains, MOST_ROWS))
    shape = request.shape(2 * layers)
    shape.check_run()
    is_narrow, least = min(shape.width, shape.heads) <= 4 * chains, 4 * chains + 1
    refuse_if(is_narrow, "too-few-for-chains", shape.heads, chains=chains, least=least)
    if shape.side < layers:
        needs = {"side": shape.side, "layers": layers, "least": 2 * layers}
        raise refusal("too-short-for-chains", shape.positions, **needs)
    bound = explicit.causal_chain_lower_bound(shape.depth, chains)
    shape.check_rows(bound + SURPLUS, f"with {{chains}}={chains}", "use less depth or fewer chains")
    inside, outside = np.zeros((2, bound + SURPLUS, shape.width, shape.side), np.int64)
    for place, samples in ((1, inside), (2, outside)):
        size = (len(samples), chains, shape.side)
        drawn = np.random.default_rng(place).integers(0, prime, size)
        samples[:, place : 4 * chains : 4] = drawn
    outside[:, :, -1] = 0
    constants = [0, *(at for k in range(chains) for at in (3 + 4 * k, 4 + 4 * k))]
    outside[:, constants, -1] = 1
    formula = f"the product of {chains} x prod_l (t_l + b_l)^(2^({layers - 2} - l))"
    outputs = partial(promises.chain_product, chains, layers, prime)
    parts: dict[str, Any] = {"promise": Promise(formula=formula, outputs=outputs)}
    parts |= {"network": weights.chain_network(shape, chains), "sizes": {"chains": chains}}
    return _witness(request, shape, prime, [inside, outside], entry=3, causal=True, **parts)


def _convolution(request: WitnessRequest, prime: int) -> Witness:
    """The base weights behind a kernel that spreads each patch over the active coordinates."""
    shape, r = request.shape(), request.rank or request.width
    columns, hd = used_columns(shape, r), shape.half
    # The coordinates that templates use: the constants, and so many of either half.
    halves = (shape.places(at, at + hd)[:columns] for at in (0, hd))
    active = sorted(chain(shape.places(2 * hd, shape.head_dim), *halves))
    patch = _PATCH if request.patch is None else request.patch
    channels = -(-len(active) // max(1, patch)) if request.channels is None else request.channels
    check_at_least(1, patch=patch, channels=channels)
    held, rank = patch * channels, len(active)
    numbers = {"channels": channels, "held": held, "rank": rank}
    refuse_if(held < rank, "patch-too-small", patch, **numbers, enough=-(-rank // patch))
    most = MOST_PATCH_NUMBERS
    refuse_if(held > most, "patch-too-large", patch, **numbers, most=most)
    vectors = weights.unit_vectors(shape, columns, prime)
    kernel = np.zeros((shape.width, held), np.int64)
    kernel[active, range(rank)] = 1
    # The kernel makes each sample of the patches that hold its active coordinates.
    samples = (weights.side(shape, chosen) for chosen in weights.both_halves(shape, vectors))
    inputs = [kernel @ (kernel.T @ x_BDN) for x_BDN in samples]
    more = _embedding(r, kernel, rank, patch=patch, channels=channels)
    return _witness(request, shape, prime, inputs, vectors, **more)


def _vocabulary(request: WitnessRequest, prime: int) -> Witness:
    """The base weights over a table of row templates, column templates and the filler."""
    shape, r = request.shape(), request.rank or request.width
    columns = used_columns(shape, r)
    needed = vocabulary.vocabulary_needed(shape.depth, shape.width, shape.heads, r)
    vocab = _checked_vocab(request.vocab, needed)
    vectors = weights.unit_vectors(shape, columns, prime)
    table = np.repeat(weights.filler(shape), vocab, axis=1)
    table[:, : 2 * len(vectors)] = np.concatenate(weights.both_halves(shape, vectors)).T
    tokens = np.full((2 * len(vectors), shape.side), 2 * len(vectors))
    tokens[:, 0] = range(len(tokens))
    inputs = np.split(table[:, tokens].transpose(1, 0, 2), 2)
    # The constants are equal rows of the table.
    more = _embedding(r, table, 2 * columns + 1, vocab=vocab)
    return _witness(request, shape, prime, inputs, vectors, **more)


def _long_vocabulary(request: WitnessRequest, prime: int) -> Witness:
    """The base weights over 2 d + 1 one-hot tokens, d = floor((r - 1 - H) / 2), and sequences.

    A point takes E places a coordinate, of which as many hold its token as its value says. `rank`
    is the papers' r, which counts the H equal constants; the table has rank 2 d + 1 only, so r may
    exceed the width by one.
    """
    r = request.rank or request.width + 1
    d = _spelled_columns(request.shape(), r)
    needed = vocabulary.positions_needed(request.depth, request.heads, r)
    shape = request.shape(needed)
    shape.check_run()
    refuse_if(shape.positions < needed, "too-short-to-spell", shape.positions, needed=needed)
    vocab = _checked_vocab(request.vocab, 2 * d + 1)
    degree = continuous.doubled_degree(shape.depth)
    points = np.array(vocabulary.smallest_full_rank_sphere(d, degree))
    E = points.max()
    table = np.repeat(weights.filler(shape), vocab, axis=1)
    one_hots = weights.both_halves(shape, np.eye(d, dtype=np.int64))
    table[:, 1 : 1 + 2 * d] = np.concatenate(one_hots).T
    places = np.arange(E) < points[:, :, None]

    def spelled(first: int) -> Residues:
        tokens = np.zeros((len(points), shape.side), np.int64)
        own = places * np.arange(first, first + d)[:, None]
        tokens[:, : d * E] = own.reshape(len(points), -1)
        return table[:, tokens].transpose(1, 0, 2)

    more = _embedding(r, table, 2 * d + 1, vocab=vocab)
    return _witness(request, shape, prime, [spelled(1), spelled(1 + d)], points, **more)


def _monomial(request: WitnessRequest, prime: int) -> Witness:
    """The monomial of a plan, that which was given or the best of a few that are grown.

    Inputs are random: more than the promised rank where it can be measured.
    """
    shape = request.shape(2 * request.heads)
    shape.check_run()
    plan, entry, sizes = request.plan, 0, (shape.depth, shape.width, shape.heads)
    if plan is None:
        tries = _PLANS_GROWN if shape.heads <= _MANY_HEADS else 1
        plans = (explicit.grow_plan(shape.depth, shape.heads, seed=seed) for seed in range(tries))
        plan, entry = max(plans, key=lambda found: int(explicit.monomial_witness(*sizes, *found)))
    entry = entry if request.entry is None else request.entry
    expected = int(explicit.monomial_witness(*sizes, plan, entry))
    if shape.side < shape.heads:
        needs = {"side": shape.side, "heads": shape.heads, "least": 2 * shape.heads}
        raise refusal("dependent-moments", shape.positions, **needs)
    wanted = expected + SURPLUS
    work = wanted**2 * shape.multiplications
    fits = wanted <= MOST_ROWS and work <= promises.MOST_MULTIPLICATIONS
    size = (wanted if fits else FEW_SAMPLES, shape.width, shape.side)
    sides = [np.random.default_rng(seed).integers(0, prime, size) for seed in (1, 2)]
    exponents = [explicit.final_exponents(*sizes, plan, head) for head in range(shape.heads)]
    outputs = partial(promises.moment_monomials, exponents, prime)
    promise = Promise(formula="x_h prod S_ab^E_ab, S = X X^T", outputs=outputs)
    more: dict[str, Any] = {"sizes": {"plan": plan, "entry": entry}, "entry": entry}
    network = weights.monomial_network(shape, plan)
    more |= {"network": network, "promise": promise}
    return _witness(request, shape, prime, sides, **more)


class WitnessKind(NamedTuple):
    """What a kind takes besides depth, width, heads and positions, its builder and its bound."""

    takes: tuple[str, ...]
    build: Callable[[WitnessRequest, int], Witness]
    bound_id: str


KINDS = {
    "base": WitnessKind((), _base, "lb"),
    "simplified": WitnessKind((), _simplified, "lb_strong"),
    "convolution": WitnessKind(("rank", "patch", "channels"), _convolution, "lb_vocab"),
    "vocabulary": WitnessKind(("rank", "vocab"), _vocabulary, "lb_vocab"),
    "vocabulary-long": WitnessKind(("rank", "vocab"), _long_vocabulary, "lb_vocab_long"),
    "monomial": WitnessKind(("plan", "entry"), _monomial, "monomial_witness"),
    "sphere": WitnessKind(("causal",), _sphere, "lb_sphere"),
    "causal-chain": WitnessKind(("chains",), _chain, "lb_causal_chain"),
}


def _checked_vocab(vocab: int | None, needed: int) -> int:
    """The tokens asked for; too few are refused, and so many copies that they fill memory."""
    vocab = needed if vocab is None else vocab
    is_bad = not needed <= vocab <= MOST_TOKENS
    refuse_if(is_bad, "unused-tokens", vocab, needed=needed, most=MOST_TOKENS)
    return vocab


def _check_constant(shape: NetworkShape) -> None:
    """Refuse heads that have no coordinate besides their constant."""
    continuous.doubled_degree(shape.depth)
    numbers = {"heads": shape.heads, "enough": 2 * shape.heads}
    refuse_if(shape.head_dim < 2, "heads-without-vector", shape.width, **numbers)


def used_columns(shape: NetworkShape, r: int) -> int:
    """n' = floor((r - H) / 2), refused where nothing is left of it or r is over the width."""
    shape.check_halves()
    columns, heads = (r - shape.heads) // 2, shape.heads
    refuse_if(columns < 1, "no-coordinate-for-vectors", r, heads=heads, least=heads + 2)
    shape.check_fits(columns)
    vocabulary.vocabulary_lower_bound(shape.depth, shape.width, heads, r)
    return columns


def _spelled_columns(shape: NetworkShape, r: int) -> int:
    """d = floor((r - 1 - H) / 2), refused where it is zero or more than the halves hold."""
    shape.check_halves()
    d, width = (r - 1 - shape.heads) // 2, shape.width
    shape.check_fits(max(1, d))
    vocabulary.long_sequence_lower_bound(shape.depth, shape.heads, r)
    refuse_if(d > shape.heads * shape.half, "rank-over-halves", r, most=width + 1, width=width)
    return d


def _embedding(r: int, embedding: Residues, rank: int, **sizes: int) -> dict[str, Any]:
    """What a witness behind this embedding, of the papers' rank r, has more than the base one."""
    inputs = {"embedding_rank": r} | sizes
    return {"embedding": embedding, "expected_embedding_rank": rank, "sizes": inputs}


def _witness(
    request: WitnessRequest,
    shape: NetworkShape,
    prime: int,
    sides: Sequence[Residues],
    vectors: "Residues | None" = None,
    **more: Any,
) -> Witness:
    """The witness of these parts; of vectors, the simplified or the base weights and their power.

    Its inputs are its shape and `sizes`.
    """
    if vectors is not None:
        has_halves = request.kind != "simplified"
        network = weights.base_network if has_halves else weights.simplified_network
        promise = promises.inner_product_power(shape, vectors, prime, has_halves=has_halves)
        more |= {"network": network(shape, prime), "promise": promise}
    kind, bound_id = request.kind, KINDS[request.kind].bound_id
    inputs, (inside, outside) = asdict(shape) | more.pop("sizes", {}), sides
    bound = int(ENTRIES[bound_id].of(inputs))
    more |= {"kind": kind, "bound_id": bound_id, "bound": bound, "inputs": inputs}
    return Witness(shape=shape, prime=prime, inside=inside, outside=outside, **more)
