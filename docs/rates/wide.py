"""Rates of wide networks, a sweep file for `archfit sweep`: python docs/rates/wide.py > wide.toml

Four layers of width 256 to 1,024, both blocks, and GPT-2 small's shape, each at four rates (three),
factors of 2 apart, from a fifth of what the rule of narrow networks says. `cells.py` has those.
"""

from archfit.spec.rates import auto_rate

BATCH_TOKENS, CONTEXT, STEPS = 32_768, 256, 400
WIDTHS = (256, 512, 768, 1024)
FACTORS = (0.18, 0.36, 0.72, 1.44)
WARMUP = 0.3


def main() -> None:
    """Write the sweep file."""
    print(f"seeds = 1\n[base]\ncontext = {CONTEXT}\nbeta2 = 0.95")
    print('learning_rate_rule = "fan-in"\nevaluation_sequences = 512\nprecision = "bfloat16"')
    for width in WIDTHS:
        for block in ("gpt2", "llama"):
            _cell(block, 4, width, BATCH_TOKENS, STEPS, FACTORS)
    _cell("gpt2", 12, 768, 2 * BATCH_TOKENS, 300, FACTORS[:3])


def _cell(
    block: str, depth: int, width: int, batch_tokens: int, steps: int, factors: tuple[float, ...]
) -> None:
    middle = auto_rate(block, width=width, batch_tokens=batch_tokens)
    rates = [float(f"{middle * factor:.3g}") for factor in factors]
    print(f'[[grid]]\nblock = "{block}"\ndepth = {depth}\nwidth = {width}\nheads = {width // 64}')
    if block == "llama":
        print("qk_norm = true")
    print(f"batch = {batch_tokens // CONTEXT}\nsteps = {steps}\nevaluate_every = {steps // 4}")
    print(f"warmup = {round(WARMUP * steps)}\nlearning_rate = {rates}")


if __name__ == "__main__":
    main()
