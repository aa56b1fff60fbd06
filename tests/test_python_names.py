"""What `import archfit` offers."""

import subprocess
import sys

import archfit


def test_the_atlas_is_a_table_of_runs() -> None:
    atlas = archfit.atlas()
    frame = atlas.to_frame()
    assert type(frame).__name__ == "DataFrame"
    assert len(frame) == len(atlas.runs)
    assert {"kind", "family", "depth", "width", "params", "seed", "bits"} <= set(frame.columns)
    assert repr(atlas).startswith(f"Atlas({len(frame):,} runs on ")
    curves = atlas.to_dict()
    assert curves["runs"] == len(frame)


def test_importing_archfit_loads_nothing_heavy() -> None:
    code = "import archfit, sys; print({'numpy', 'torch', 'altair'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
