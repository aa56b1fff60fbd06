"""One RunSpec in, one RunRecord out; killed at any moment, a run goes on where it was."""

from archfit.spec.record import Progress, Watchers
from archfit.spec.signals import Stopped
from archfit.train.hardware import TrainSettings
from archfit.train.together import train, train_together

__all__ = ["Progress", "Stopped", "TrainSettings", "Watchers", "train", "train_together"]
