"""From a word on the command line to an audited model."""

from collections.abc import Mapping
from dataclasses import replace

from archfit.audit.architecture import model_from_architecture
from archfit.audit.audited import Audited, audited
from archfit.audit.checkpoint_model import model_from_header
from archfit.audit.config import model_from_config
from archfit.audit.disagreement import disagreements
from archfit.audit.embedding_spectrum import EmbeddingSpectrum, measure_embedding
from archfit.audit.embedding_tensor import find_embedding
from archfit.audit.model import Model
from archfit.audit.sharded_index import read_checkpoint
from archfit.audit.targets import (
    KnownModel,
    ModelFiles,
    Target,
    TrainedRun,
    find_target,
    read_config,
)
from archfit.audit.zoo import zoo_model, zoo_names
from archfit.spec import RunSpec, load_file

LARGEST_SPEC = 1 << 20  # bytes


def audit_target(word: str, *, measure: bool, environment: Mapping[str, str]) -> Audited:
    """The model that the word means, with its findings; `measure` reads its embedding, too."""
    target = find_target(word, known=zoo_names(), environment=environment)
    model = _compared(_model(target), target)
    return audited(model, _spectrum(target) if measure else None)


def _model(target: Target) -> Model:
    match target:
        case KnownModel():
            return zoo_model(target.id)
        case TrainedRun():
            spec = load_file(RunSpec, target.spec, most_bytes=LARGEST_SPEC)
            return model_from_architecture(
                spec.architecture, name=target.name, origin=str(target.spec)
            )
        case ModelFiles(config=None):
            path = target.weights()
            return model_from_header(
                read_checkpoint(path).tensors, name=target.name, origin=str(path)
            )
        case ModelFiles():
            assert target.config is not None
            return model_from_config(
                read_config(target.config), name=target.name, origin=str(target.config)
            )


def _compared(model: Model, target: Target) -> Model:
    """The model with a note wherever weights beside its config, or spec, say otherwise."""
    if isinstance(target, KnownModel) or target.checkpoint is None:
        return model
    if isinstance(target, ModelFiles) and target.config is None:
        return model
    return replace(model, notes=(*model.notes, *disagreements(model, target.checkpoint)))


def _spectrum(target: Target) -> EmbeddingSpectrum:
    if isinstance(target, KnownModel):
        raise ValueError(
            f"--weights needs a checkpoint, and {target.id} is a row of the built-in table; give "
            "a folder, a .safetensors file or org/name in the Hugging Face cache"
        )
    path = target.weights() if isinstance(target, ModelFiles) else target.checkpoint
    if path is None:
        raise ValueError(f"{target.name} has no weights yet; --weights needs a finished run")
    return measure_embedding(find_embedding(read_checkpoint(path).tensors))
