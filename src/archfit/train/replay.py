"""Work on a GPU that is recorded once and repeated without the host: a CUDA graph.

A narrow network otherwise waits for the host, which starts a few thousand small kernels a step.
"""

import gc
from collections.abc import Callable

import torch
from torch import Tensor


class Replay:
    """Runs `work` from its recording, made at the first call.

    `work` reads and writes tensors that stay where they are. What it returns is a tensor that the
    next call overwrites.
    """

    def __init__(self, work: Callable[[], Tensor]) -> None:
        self.work = work
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result: Tensor | None = None

    def __call__(self) -> Tensor:
        """Do the work once more; it is queued, not done, when this returns."""
        if self.graph is None:
            self._record()
        assert self.graph is not None
        assert self.result is not None
        self.graph.replay()
        return self.result

    def _record(self) -> None:
        """Record the work on this run's stream.

        `torch.cuda.graph` would wait for the whole GPU and collect garbage, which takes longer than
        the training of a small network, and other runs may be on other streams. No garbage is
        collected meanwhile: the recording of an ended run must not be freed in the middle of this.
        Libraries make their plans meanwhile, which only the relaxed mode allows.
        """
        graph = torch.cuda.CUDAGraph()
        gc.disable()
        graph.capture_begin(capture_error_mode="relaxed")
        try:
            self.result = self.work()
        finally:
            graph.capture_end()
            gc.enable()
        self.graph = graph
