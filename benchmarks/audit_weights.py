"""What measuring the embedding of a 2 GB checkpoint costs: bytes read, memory, and time.

Against what a user would do: load the file with safetensors, take the table's singular values.

Run:     python benchmarks/audit_weights.py [--rows 50257] [--width 1024] [--gigabytes 2]
Expect:  bytes read those of the table and header, a peak of at most 600 MB, a ratio below 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NAME = "transformer.wte.weight"
# VmHWM is the peak of this program; ru_maxrss would include that of the process it was started by.
SYSTEM = """
import sys, time
from pathlib import Path
def read_so_far():
    return int(Path("/proc/self/io").read_text().split()[1])
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
"""
OURS = """
from archfit.audit.embedding import measure_embedding
from archfit.audit.embedding import find_embedding
from archfit.audit.checkpoint_file import read_checkpoint
import numpy.linalg
start, before = time.perf_counter(), read_so_far()
spectrum = measure_embedding(find_embedding(read_checkpoint(Path(sys.argv[1]))))
seconds, read = time.perf_counter() - start, read_so_far() - before
print(seconds, peak(), spectrum.numerical_rank, spectrum.bytes_read, read)
"""
THEIRS = """
import numpy as np
from safetensors.numpy import load_file
start = time.perf_counter()
table = load_file(sys.argv[1])[sys.argv[2]].astype(np.float32)  # bfloat16 needs ml_dtypes: float16
rank = np.linalg.matrix_rank(table)
seconds = time.perf_counter() - start
print(seconds, peak(), rank, 0, 0)
"""


def main() -> None:
    """Make the files, measure in fresh processes, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_257)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, size = Path(name), int(asked.gigabytes * 1e9)
        ours, theirs = folder / "bf16.safetensors", folder / "f16.safetensors"
        write_checkpoint(ours, "BF16", (asked.rows, asked.width), size)
        write_checkpoint(theirs, "F16", (asked.rows, asked.width), size)
        seconds, peak, rank, told, read = run(OURS, ours)
        print(f"archfit:     {seconds:6.2f} s, peak {peak / 1e6:5.0f} MB, rank {rank:.0f}")
        print(f"             read {told / 1e6:.1f} MB by its own account, {read / 1e6:.1f} MB by")
        print(f"             the system's, of {size / 1e6:.0f} MB")
        their_seconds, their_peak, their_rank, _, _ = run(THEIRS, theirs, NAME)
        print(f"load, rank:  {their_seconds:6.2f} s, peak {their_peak / 1e6:5.0f} MB, ", end="")
        print(f"rank {their_rank:.0f} (numpy's tolerance for float32)")
        print(f"ratio of times: {seconds / their_seconds:.2f}")


def write_checkpoint(path: Path, dtype: str, shape: tuple[int, int], size: int) -> None:
    """A table of rank 64 and, in a hole of the file that takes no disk, the other tensors."""
    import numpy as np

    chance = np.random.default_rng(0)
    left, right = (chance.standard_normal((n, 64), np.float32) / 50 for n in shape)
    table = left @ right.T
    bits = table.astype(np.float16).view(np.uint16)
    if dtype == "BF16":  # to nearest, ties away from zero
        bits = ((table.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
    rest = (size - bits.nbytes) // 2
    entries = {
        NAME: {"dtype": dtype, "shape": shape, "data_offsets": [0, bits.nbytes]},
        "transformer.h.0.mlp.c_fc.weight": {
            "dtype": dtype,
            "shape": [rest],
            "data_offsets": [bits.nbytes, bits.nbytes + 2 * rest],
        },
    }
    header = json.dumps(entries).encode()
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header + bits.tobytes())
    os.truncate(path, 8 + len(header) + bits.nbytes + 2 * rest)


def run(code: str, path: Path, *more: str) -> list[float]:
    """What a fresh process prints."""
    command = [sys.executable, "-c", SYSTEM + code, str(path), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


if __name__ == "__main__":
    main()
