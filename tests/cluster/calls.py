"""What tests call on a cluster: in a file of its own, because every process there imports it."""

import time


def square(number):
    return number * number


def square_but_there(number, doomed, marks):
    """A square, once the doomed node is busy; on that node, nothing that anybody lives to see."""
    import ray

    if ray.get_runtime_context().get_node_id() == doomed:
        (marks / f"begun-{number}").touch()
        time.sleep(600)
    end = time.monotonic() + 60
    while len(list(marks.glob("begun-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    return number * number


def return_rows(model, rows, path, n_before):
    return rows


def fail_at(number, bad):
    if number == bad:
        raise ArithmeticError(f"there is no answer to {number}")
    return number


class EndOnce:
    """A callback that kills the process of one worker after an epoch, the first time that it comes there."""

    def __init__(self, folder, epoch):
        self.folder, self.epoch = folder, epoch

    def __call__(self, epoch):
        import os
        import signal

        from torch import distributed

        (self.folder / f"epoch-{epoch.number}-of-{os.getpid()}").touch()
        mark = self.folder / "ended"
        if epoch.number == self.epoch and distributed.get_rank() == 1 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


class Mark:
    """A callback that leaves a file for each epoch."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, epoch):
        (self.folder / f"epoch-{epoch.number}").touch()


def sum_of(table, number):
    return table.sum() + number
