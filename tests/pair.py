"""Workers of a training, as threads of one process."""

import pickle
import threading

from tartree.training.worker_group import SingleWorker


def make_workers(size):
    """Workers of one group; an error of one ends the waiting of the others with `barrier.abort()`."""
    barrier, board = threading.Barrier(size), [None] * size

    class Worker(SingleWorker):
        def __init__(self, rank):
            self.rank, self.size, self.barrier = rank, size, barrier

        def gather(self, value):
            board[self.rank] = pickle.dumps(value)  # what workers send each other must be plain data
            barrier.wait(60)
            found = [pickle.loads(other) for other in board]
            barrier.wait(60)
            return found

        def average(self, tensors, weight):
            parts = self.gather(([tensor.clone() for tensor in tensors], weight))
            total = sum(own for _, own in parts)
            for place, tensor in enumerate(tensors):
                tensor.copy_(sum(found[place] * own for found, own in parts) / total)

        def sum(self, tensor):
            return sum(self.gather(tensor.clone()))

    return [Worker(rank) for rank in range(size)]


def together(work, size=2):
    """What `work(worker)` gives for each worker of a group; the first error is raised."""
    found, errors = {}, []

    def run(worker):
        try:
            found[worker.rank] = work(worker)
        except BaseException as error:
            errors.append(error)
            worker.barrier.abort()

    threads = [threading.Thread(target=run, args=(worker,)) for worker in make_workers(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [found[rank] for rank in range(size)]
