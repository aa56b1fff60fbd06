"""Parameter counts as the papers make them: weight matrices of the blocks, nothing else."""

from archfit.theory.sizes import check_heads_fit, check_sizes


def standard_parameters(depth: int, width: int) -> int:
    """12 L d_x^2: a standard Transformer without its embeddings.

    Source: Levine et al. 2020, introduction.
    Status: proved (a count).
    """
    check_sizes(depth=depth, width=width)
    return 12 * depth * width**2


def analysed_parameters(depth: int, width: int, heads: int, head_dim: int | None = None) -> int:
    """4 L H d_a d_x: the analysed network, attention only; 4 L d_x^2 when d_a = d_x / H.

    Source: Levine et al. 2020, eq. 3.
    Status: proved (a count).
    """
    check_sizes(depth=depth, width=width, heads=heads)
    if head_dim is None:
        check_heads_fit(width=width, heads=heads)
        return 4 * depth * width**2
    check_sizes(head_dim=head_dim)
    return 4 * depth * heads * head_dim * width
