"""Several watchers hear what one would."""

from archfit.spec import Evaluation, RunRecord, RunSpec
from archfit.spec.record import Progress, Watchers
from archfit.spec.run_options import RunOptions
from archfit.spec.signals import Stopped
from tests_curves import record as record_of


class Noting(Watchers):
    """Writes down what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[object] = []

    def started(self, spec: RunSpec, step: int) -> None:
        self.heard.append((spec, step))

    def progress(self, progress: Progress) -> None:
        self.heard.append(progress)

    def evaluated(self, evaluation: Evaluation) -> None:
        self.heard.append(evaluation)

    def notice(self, sentence: str) -> None:
        self.heard.append(sentence)

    def finished(self, record: RunRecord) -> None:
        self.heard.append(record)


def test_every_watcher_hears_everything_in_order() -> None:
    record = record_of(RunOptions(precision="float32").architecture(vocab=5), 1.0, 0)
    progress = Progress(
        step=3,
        steps=12,
        training_nats_per_token=2.0,
        tokens_per_second=1.0,
        flop_utilisation=None,
        seconds_left=4.0,
    )
    first, second = Noting(), Noting()
    all_of_them = Watchers(first, second)
    all_of_them.started(record.spec, 2)
    all_of_them.progress(progress)
    all_of_them.evaluated(record.evaluations[0])
    all_of_them.notice("a sentence")
    all_of_them.finished(record)
    expected = [(record.spec, 2), progress, record.evaluations[0], "a sentence", record]
    assert first.heard == second.heard == expected


def test_who_was_stopped_is_told_where_and_by_what() -> None:
    stopped = Stopped(7, 15)
    assert str(stopped) == "stopped at step 7; run the same command again to resume"
    assert stopped.signal_number == 15
