"""An architecture in, other tools' files out; trained weights in, a Hugging Face folder out."""

from archfit.export.formats import FORMATS, Export, export_config, write_files
from archfit.export.shape import ExportShape, shape_of
from archfit.export.trained import (
    TrainedRun,
    export_run,
    open_run,
    with_tokenizer,
    without_tokenizer,
)
from archfit.export.weights import check_weights, is_export, write_weights

__all__ = [
    "FORMATS",
    "Export",
    "ExportShape",
    "TrainedRun",
    "check_weights",
    "export_config",
    "export_run",
    "is_export",
    "open_run",
    "shape_of",
    "with_tokenizer",
    "without_tokenizer",
    "write_files",
    "write_weights",
]
