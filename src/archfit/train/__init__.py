"""One RunSpec in, one RunRecord out; killed at any moment, a run goes on where it was."""

from archfit.train.hardware import Stopped, TrainSettings
from archfit.train.together import train, train_together
from archfit.train.trackers import Progress, Watcher, Watchers

__all__ = ["Progress", "Stopped", "TrainSettings", "Watcher", "Watchers", "train", "train_together"]
