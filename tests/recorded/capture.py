"""Record anew what commands answer, from any source tree; run it in the top folder:

PYTHONPATH=SRC:tests python -m recorded.capture [GROUP ...]

SRC is the `src` folder to record from; without groups, all of commands.txt is recorded.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from recorded.replay import FOLDER, commands, replayed


def main(groups: list[str]) -> None:
    """Write one file for each group."""
    for group, lines in commands().items():
        if groups and group not in groups:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            answers = list(replayed(lines, Path(folder)))
        text = "".join(json.dumps(answer, separators=(",", ":")) + "\n" for answer in answers)
        (FOLDER / f"{group}.jsonl").write_text(text)
        statuses = [answer["status"] for answer in answers]
        counts = ", ".join(f"{statuses.count(status)} x {status}" for status in (0, 1, 2))
        sys.stdout.write(
            f"{group}: {len(lines)} commands ({counts}), {len(text)} bytes, "
            f"{time.monotonic() - start:.1f} s\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
