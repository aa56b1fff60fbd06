"""The small files that recorded commands read, written into the folder where they run."""

import json
import lzma
import random
import struct
from pathlib import Path

RECORDS = Path(__file__).with_name("records.jsonl.xz")

CONFIGS: dict[str, dict[str, object]] = {
    "gpt2": {
        "model_type": "gpt2", "n_layer": 3, "n_embd": 48, "n_head": 4, "vocab_size": 300,
        "n_positions": 64,
    },
    "llama": {
        "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 96, "num_attention_heads": 6,
        "num_key_value_heads": 2, "head_dim": 24, "intermediate_size": 256, "vocab_size": 512,
        "max_position_embeddings": 128, "tie_word_embeddings": False,
    },
    "bert": {
        "model_type": "bert", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4,
        "intermediate_size": 256, "vocab_size": 400, "max_position_embeddings": 64,
        "type_vocab_size": 2,
    },
    "albert": {
        "model_type": "albert", "num_hidden_layers": 6, "hidden_size": 256, "embedding_size": 32,
        "num_attention_heads": 4, "intermediate_size": 1024, "vocab_size": 3000,
        "max_position_embeddings": 64, "type_vocab_size": 2, "num_hidden_groups": 1,
        "inner_group_num": 1,
    },
    "t5": {
        "model_type": "t5", "num_layers": 3, "num_decoder_layers": 3, "d_model": 64, "num_heads": 8,
        "d_kv": 64, "d_ff": 256, "vocab_size": 500, "relative_attention_num_buckets": 32,
    },
    "esm": {
        "model_type": "esm", "num_hidden_layers": 6, "hidden_size": 320, "num_attention_heads": 20,
        "intermediate_size": 1280, "vocab_size": 33, "max_position_embeddings": 128,
        "position_embedding_type": "rotary",
    },
    "mistral": {
        "model_type": "mistral", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 128,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 160,
    },
    "unknown": {"model_type": "no-such-family", "hidden_size": 64},
    "incomplete": {"model_type": "gpt2", "n_layer": 3},
    "negative": {"model_type": "gpt2", "n_layer": -3, "n_embd": 48, "n_head": 4},
}  # fmt: skip

FILES = {
    "mine.toml": """
seeds = 2

[base]
context = 32
steps = 20
batch = 4
learning_rate_rule = "standard"

[[grid]]
depth = [1, 2]
width = [8, 16]

[[grid]]
match = "block_params"
block_params = ["4.8K"]
depth = [1, 2]

[[list]]
depth = [2, 2]
width = [16, 24]
embedding_inner = [4, 8]
""",
    "train.toml": """
seeds = [3]

[base]
context = 12
steps = 4
batch = 4
learning_rate_rule = "standard"
heads = 2
evaluation_sequences = 3

[[grid]]
depth = [1]
width = [8, 12]
""",
    "misspelt.toml": "[[grid]]\ndepht = [2]\n",
    "impossible.toml": "[[grid]]\ndepth = [2]\nwidth = [7]\nheads = [2]\n",
    "no.toml": "seeds = [",
    "bad.json": '{"name": ',
    "empty.txt": "",
    "song.abc": "X:1\nT:A\nK:C\nCDEF GABc|\n\n" * 40 + "X:2\nT:B\nK:G\nGABc dedB|\n\n" * 40,
}


def write_world(folder: Path) -> None:
    """Write every input; the same ones each time."""
    draw = random.Random(16)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for name, config in CONFIGS.items():
        (folder / "configs" / name).mkdir(parents=True)
        (folder / "configs" / name / "config.json").write_text(json.dumps(config))
    _write_texts(folder, draw)
    _write_numbers(folder, draw)
    _write_weights(folder)
    _write_runs(folder)


def _write_texts(folder: Path, draw: random.Random) -> None:
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(300)]
    lines = [" ".join(draw.choices(words, k=12)) for _ in range(400)]
    (folder / "words.txt").write_text("\n".join(lines) + "\n")
    (folder / "heldout.txt").write_text("\n".join(lines[:40]) + "\n")
    (folder / "texts").mkdir()
    for number in range(20):
        (folder / "texts" / f"{number}.txt").write_text("\n".join(lines[20 * number :][:20]))
    rows = [json.dumps({"text": line, "title": line[:9], "number": 3}) for line in lines]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "latin.txt").write_bytes(b"caf\xe9 au lait\n" * 100)
    for name, letters in (("dna.fa", "ACGT"), ("protein.fa", "ACDEFGHIKLMNPQRSTVWY")):
        motifs = ["".join(draw.choices(letters, k=12)) for _ in range(6)]
        (folder / name).write_text(
            "".join(f">{i}\n{''.join(draw.choices(motifs, k=12))}\n" for i in range(120))
        )
    unusual = "ACGTXBZJACGT" * 9
    (folder / "odd.fa").write_text("".join(f">{i}\n{unusual}\n" for i in range(120)))


def _write_numbers(folder: Path, draw: random.Random) -> None:
    from PIL import Image

    values = [[round(draw.gauss(0, 1), 3) for _ in range(3)] for _ in range(600)]
    table = ["a,b,c", *(",".join(map(str, row)) for row in values)]
    (folder / "values.csv").write_text("\n".join(table) + "\n")
    ids = [draw.randrange(40) for _ in range(5000)]
    (folder / "ids.bin").write_bytes(struct.pack("<5000H", *ids))
    (folder / "images").mkdir()
    for number in range(24):
        pixels = bytes(draw.randrange(256) for _ in range(64))
        Image.frombytes("L", (8, 8), pixels).save(folder / "images" / f"{number:02}.png")


def _write_weights(folder: Path) -> None:
    """A checkpoint whose embedding of 300 x 48 has a rank of 5."""
    import numpy as np
    from safetensors.numpy import save_file

    number = np.arange(300 * 5, dtype=np.float64).reshape(300, 5)
    other = np.arange(5 * 48, dtype=np.float64).reshape(5, 48)
    table = (np.sin(number) @ np.cos(1.7 * other)).astype(np.float32)
    (folder / "checkpoint").mkdir()
    config = CONFIGS["gpt2"] | {"n_layer": 1}
    (folder / "checkpoint" / "config.json").write_text(json.dumps(config))
    save_file({"wte.weight": table}, folder / "checkpoint" / "model.safetensors")


def _write_runs(folder: Path) -> None:
    """Folders of finished runs, sweep by sweep, as `archfit sweep` left them."""
    with lzma.open(RECORDS, "rt") as lines:
        for line in lines:
            run = json.loads(line)
            place = folder / "runs" / run["sweep"] / run["name"]
            place.mkdir(parents=True)
            (place / "spec.json").write_text(json.dumps(run["record"]["spec"]))
            (place / "record.json").write_text(json.dumps(run["record"]))
