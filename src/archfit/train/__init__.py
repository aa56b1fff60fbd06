"""One RunSpec in, one RunRecord out; killed at any moment, a run goes on where it was."""

from archfit.train.run import train
from archfit.train.settings import Settings, Stopped
from archfit.train.together import train_together
from archfit.train.watch import Progress, Watcher, Watchers

__all__ = ["Progress", "Settings", "Stopped", "Watcher", "Watchers", "train", "train_together"]
