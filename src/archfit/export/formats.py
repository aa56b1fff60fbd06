"""All formats by name, and the export of a shape in one of them."""

import os
from pathlib import Path

from archfit.export.format import Export, Format
from archfit.export.gpt2 import HF_GPT2
from archfit.export.litgpt import LITGPT
from archfit.export.llama import HF_LLAMA, HF_QWEN3
from archfit.export.megatron import MEGATRON
from archfit.export.nanochat import NANOCHAT
from archfit.export.neox import GPT_NEOX
from archfit.export.opt import HF_OPT
from archfit.export.shape import ExportShape

FORMATS: dict[str, Format] = {
    one.name: one
    for one in (HF_GPT2, HF_LLAMA, HF_QWEN3, HF_OPT, LITGPT, NANOCHAT, GPT_NEOX, MEGATRON)
}


def export_config(shape: ExportShape, name: str) -> Export:
    """The files that describe `shape` to a tool; refused with the formats that can, if it can't."""
    if name not in FORMATS:
        raise ValueError(f"format={name!r} is unknown; use one of {', '.join(FORMATS)}")
    wanted = FORMATS[name]
    if obstacles := wanted.obstacles(shape):
        raise ValueError(f"{name} cannot express this shape: {obstacles[0]}; {_way_out(shape)}")
    return Export(
        format=name,
        files=wanted.files(shape),
        params=wanted.params(shape),
        notes=wanted.notes(shape),
    )


def write_files(export: Export, folder: Path) -> None:
    """Write new files into a folder that is there, and put them on disk."""
    for name, content in export.files.items():
        with open(folder / name, "x", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _way_out(shape: ExportShape) -> str:
    able = [one.name for one in FORMATS.values() if not one.obstacles(shape)]
    if able:
        return f"{', '.join(able)} can"
    return "no format here can express all of it at once"
