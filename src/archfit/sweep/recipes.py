"""How cells are trained at each scale; a named sweep changes depth, width and tables only."""

from dataclasses import replace

from archfit.spec.asked import AskedRun
from archfit.sweep.sweep import Scale

# Wies et al. 2021, appendix C: 1M steps of 512 x 128 tokens, AdamW, two heads.
WIES = AskedRun(
    precision="bfloat16",
    heads=2,
    context=128,
    steps=1_000_000,
    batch=512,
    warmup=12_000,
    learning_rate=1.6e-3,
    weight_decay=0.01,
    dropout=0.1,
    evaluate_every=10_000,
    evaluation_sequences=40_000,
)
# Levine et al. 2020, appendix D: Adam, and no word on dropout. The peak rate is not printed there;
# it is that of the later paper.
LEVINE = replace(WIES, weight_decay=0.0, dropout=0.0, evaluation_sequences=170_000)
# One GPU: 33M tokens a run, 5 to 25 seconds each. CompleteP, since one rate for all depths compares
# tunings: at 3.4M block parameters it trains every depth better than the standard rule, and the
# best of depths 2, 4, 8, 16 is then 8 instead of 4 (docs/LOG.md).
SMALL = AskedRun(
    precision="bfloat16",
    heads=2,
    context=128,
    steps=2000,
    batch=128,
    learning_rate_rule="completep",
    evaluate_every=1000,
    evaluation_sequences=2048,
)
# Files of sequences and tunes hold a few million tokens: half as many steps, and evaluations that
# show where a network begins to learn them by heart.
SMALL_FILES = replace(SMALL, steps=1000, evaluate_every=250)
# Two CPU cores: a fifth of a million tokens a run, seconds each. So few steps are made with GPT-2's
# rates: CompleteP's, those of a long training, lose 0.25 nats here.
SMOKE = AskedRun(
    precision="float32",
    heads=2,
    context=32,
    steps=400,
    batch=16,
    evaluate_every=200,
    evaluation_sequences=512,
)


def base(scale: Scale) -> AskedRun:
    """What the cells of a named sweep share."""
    return {"smoke": SMOKE, "small": SMALL, "paper": WIES}[scale]
