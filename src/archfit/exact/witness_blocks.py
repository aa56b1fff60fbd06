"""Weights that several witnesses share: each head at work on its own block of coordinates."""

from archfit.exact.witness_network import Matrix, NetworkShape, matrix


def block_values(shape: NetworkShape, h: int, *, share: int) -> Matrix:
    """W^V that reads block h as it is, and `share` times its constant."""
    a, o = shape.head_dim, h * shape.head_dim
    entries = {(s, o + s): 1 for s in range(a - 1)}
    return matrix(a, shape.width, entries | {(a - 1, o + a - 1): share})


def block_output(shape: NetworkShape, h: int) -> Matrix:
    """W^O that writes the head into block h."""
    a = shape.head_dim
    return matrix(shape.width, a, {(h * a + s, s): 1 for s in range(a)})


def constant_values(shape: NetworkShape, h: int, factor: int) -> Matrix:
    """W^V that reads the constant of block h alone, `factor` times."""
    a = shape.head_dim
    return matrix(a, shape.width, {(0, h * a + a - 1): factor})


def output_to_all(shape: NetworkShape) -> Matrix:
    """W^O that adds the head's first coordinate to every coordinate of the output."""
    return matrix(shape.width, shape.head_dim, {(k, 0): 1 for k in range(shape.width)})
