"""Networks of the atlas that were trained again: are they where their curves said?

    python docs/atlas/again.py

Thirty cells, drawn by random.Random(20261118), were trained again with seed 11. Each is compared
with the 90 % prediction interval of its curve, made without any run of that seed.
"""

from dataclasses import replace

from archfit.fit.atlas import Series, read_atlas, size_of

SEED = 11


def main() -> None:
    """A line a network that is outside, and the count."""
    atlas = read_atlas()
    others = replace(atlas, runs=tuple(run for run in atlas.runs if run.spec.seed != SEED))
    curves = {
        (series, curve.size): curve for series, some in others.curves().items() for curve in some
    }
    inside = tried = 0
    for run in (run for run in atlas.runs if run.spec.seed == SEED):
        shape, bits = run.spec.architecture, run.record.evaluations[-1].heldout_bits_per_byte
        found = curves[Series.of(run), size_of(run.spec)].predicted(shape.depth, shape.params)
        assert found.low is not None
        assert found.high is not None
        tried, is_inside = tried + 1, found.low <= bits <= found.high
        inside += is_inside
        if not is_inside:
            print(f"{run.kind}, {run.vocabulary}, {shape.depth} x {shape.width}: {bits:.4f}")
            print(f"    not in {found.low:.4f} to {found.high:.4f}")
    print(f"{inside} of {tried} inside")


if __name__ == "__main__":
    main()
