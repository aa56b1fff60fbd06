"""One RunSpec in, one RunRecord out; killed at any moment, a run goes on where it was."""

from archfit.train.context import Progress, Stopped, TrainSettings, Watcher, Watchers
from archfit.train.together import train, train_together

__all__ = ["Progress", "Stopped", "TrainSettings", "Watcher", "Watchers", "train", "train_together"]
