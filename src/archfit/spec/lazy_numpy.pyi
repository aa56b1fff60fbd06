"""To type checkers `lazy_numpy` is numpy itself."""

from numpy import *  # noqa: F403
