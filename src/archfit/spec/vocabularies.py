"""How large a vocabulary must be so that its embedding has a certain rank."""

import math

BYTES = 256  # rows of a byte-level BPE that are no merges; few of them occur in most sources


def bpe_vocab_for(rank: float) -> int:
    """Tokens of the BPE, a power of two, that has at least `rank` merges beside its bytes."""
    return 1 << math.ceil(math.log2(rank + BYTES))
