"""Float64 arrays of numpy or torch behind the same few functions.

Everything here computes with integers: float64 holds them exactly up to 2^53, and its matrix
products run at full speed on a CPU and on a GPU.
"""

import os
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor

    import numpy as np
    from numpy.typing import NDArray
else:
    from archfit.spec import lazy_numpy as np

Job = TypeVar("Job")
Done = TypeVar("Done")
Array: TypeAlias = Any  # numpy.ndarray or torch.Tensor; both index, slice and multiply alike

CACHED = 1 << 15  # numbers that stay in the cache
AHEAD = 64  # pieces of work that wait for a thread


class NumpyArrays:
    """What measuring asks of a library, on the CPU."""

    tile_numbers = CACHED  # of a matrix for all pairs at once; also below what malloc maps anew
    cached_numbers = 1 << 19  # of a matrix that is worked on a few rows at a time

    def array(self, values: "NDArray[np.generic]") -> Array:
        """A float64 array with these values."""
        return np.array(values, np.float64)

    def zeros(self, *shape: int) -> Array:
        """An array of zeros."""
        return np.zeros(shape)

    def numpy(self, array: Array) -> "NDArray[np.float64]":
        """The values on the host."""
        return np.asarray(array, np.float64)

    def copy(self, array: Array) -> Array:
        """An array that shares no memory with this one, laid out row by row."""
        return array.copy()

    def reduce_(self, array: Array, prime: int) -> Array:
        """The array itself, with every integer replaced by the nearest to zero of its class.

        In pieces that stay in the cache between the four passes.
        """
        rows = max(1, CACHED * len(array) // max(1, array.size))
        for first in range(0, len(array), rows):
            piece = array[first : first + rows]
            quotient = piece * (1.0 / prime)
            np.rint(quotient, out=quotient)
            quotient *= prime
            piece -= quotient
        return array

    def add_product_(self, total: Array, left: Array, right: Array) -> Array:
        """total + left * right, element by element with broadcasting, in place."""
        total += left * right
        return total

    def each(self, work: "Callable[[Job], Done]", jobs: "Sequence[Job]") -> "Iterator[Done]":
        """The results of independent pieces of work, in their order.

        On threads: numpy lets go of the interpreter while it works.
        """
        if len(jobs) < 2:
            yield from map(work, jobs)
            return
        begun: deque[Future[Done]] = deque()
        try:
            for job in jobs:
                begun.append(_threads().submit(work, job))
                if len(begun) > AHEAD:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:  # interrupted: what has not begun must not be waited for
            for piece in begun:
                piece.cancel()


@cache
def _threads() -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0)))


class TorchArrays:
    """The same on a device of torch."""

    def __init__(self, device: str) -> None:
        import torch

        self.torch = torch
        self.device = torch.device(device)
        is_gpu = self.device.type == "cuda"
        self.tile_numbers = 1 << (24 if is_gpu else 15)
        self.cached_numbers = 1 << (28 if is_gpu else 19)

    def array(self, values: "NDArray[np.generic]") -> Array:
        """A float64 tensor with these values, on the device."""
        return self.torch.from_numpy(np.array(values, np.float64)).to(self.device)

    def zeros(self, *shape: int) -> Array:
        """A tensor of zeros."""
        return self.torch.zeros(shape, dtype=self.torch.float64, device=self.device)

    def numpy(self, array: Array) -> "NDArray[np.float64]":
        """The values on the host."""
        values: NDArray[np.float64] = array.cpu().numpy()
        return values

    def copy(self, array: Array) -> Array:
        """A tensor that shares no memory with this one, laid out row by row."""
        return array.clone(memory_format=self.torch.contiguous_format)

    def reduce_(self, array: Array, prime: int) -> Array:
        """The tensor itself, with every integer replaced by the nearest to zero of its class."""
        quotient = (array * (1.0 / prime)).round_()
        return array.sub_(quotient, alpha=float(prime))

    def add_product_(self, total: Array, left: Array, right: Array) -> Array:
        """total + left * right, element by element with broadcasting, in place."""
        return total.addcmul_(left, right)

    def each(self, work: "Callable[[Job], Done]", jobs: "Sequence[Job]") -> "Iterator[Done]":
        """The results of independent pieces of work, in their order; the device is parallel."""
        return map(work, jobs)


Arrays: TypeAlias = NumpyArrays | TorchArrays
