"""What chains of layers reach under a causal mask: a lower bound of 3^(order L^2) at fixed width.

Every layer multiplies a summary of the prefix of its own into one output; docs/theory.md has the
proof, and `archfit witness --kind causal-chain` the weights.
"""

import math
from typing import TYPE_CHECKING

from archfit.theory.arithmetic import (
    EXACT_DIGITS,
    TooManyDigitsError,
    catalogued,
    certified,
    ln,
    log3_from_ln,
    power,
)
from archfit.theory.causal_bounds import PrefixNetwork
from archfit.theory.refusal import refuse_if

if TYPE_CHECKING:
    from flint import arb


@catalogued("lb_causal_chain")
def causal_chain_lower_bound(depth: int, chains: int = 1) -> int:
    """Almost all weights reach this between a prefix and the rest: 3^(order L^2) at fixed width.

        ( prod_{j=0..L'-2} (2^j + 1) )^g,   L' = L - ceil(log3 g),   for g chains

    It needs d_x, H >= 4g + 1, r >= 2g + 1, n_A >= L' - 1 and n_B >= L'.
    """
    layers = chain_layers(depth, chains)
    if chains * layers**2 * math.log10(2) / 2 > EXACT_DIGITS:
        raise TooManyDigitsError(f"the chain of depth {depth}")
    return power(math.prod(2**j + 1 for j in range(layers - 1)), chains)


@certified("lb_causal_chain_log3")
def causal_chain_lower_bound_log3(depth: int, chains: int = 1) -> "arb":
    """Logarithm base 3 of the rank that chains reach."""
    from flint import arb, ctx, fmpz

    last = chain_layers(depth, chains) - 1
    kept = min(last, ctx.prec)
    total = sum(((arb(2) ** -j).log1p() for j in range(kept)), ln(2) * fmpz(last * (last - 1) // 2))
    if kept < last:  # the rest is below sum 2^-j
        total += arb(0, 1) * arb(2) ** (1 - kept)
    return log3_from_ln(total * chains)


def chain_layers(depth: int, chains: int) -> int:
    """L' = L - ceil(log3 g): what the layers that multiply the chains leave to each."""
    joining = next(layers for layers in range(chains) if 3**layers >= chains) if chains > 1 else 0
    is_shallow, least = depth - joining < 2, joining + 2
    refuse_if(is_shallow, "too-shallow-for-chains", depth, chains=chains, least=least)
    return depth - joining


def most_chains(net: PrefixNetwork) -> int:
    """The number of chains with the largest bound that fits a network; 0 if none does."""
    room = min((min(net.width, net.heads) - 1) // 4, (net.rank - 1) // 2)
    n_A, n_B = (net.depth if n is None else n for n in (net.prefix, net.continuation))
    best, found = 0.0, 0
    # As many joining layers leave the same L', where the bound grows with g: the largest is tried.
    for g in {min(room, 3**joining) for joining in range(net.depth - 1)}:
        layers = chain_layers(net.depth, g)
        log = g * sum(math.log(2**j + 1) for j in range(layers - 1))
        if n_A >= layers - 1 and n_B >= layers and log > best:
            best, found = log, g
    return found
