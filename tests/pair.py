"""Workers of a training as threads of one process."""

import pickle
import threading

from tartree.training.worker_group import SingleWorker


def make_workers(size):
    """Return the workers of a group; on an error, `barrier.abort()` ends the waiting of the others."""
    barrier, board = threading.Barrier(size), [None] * size

    class Worker(SingleWorker):
        def __init__(self, rank):
            self.rank, self.size, self.barrier = rank, size, barrier

        def gather(self, value):
            board[self.rank] = pickle.dumps(value)  # messages between workers must be plain data
            barrier.wait(60)
            values = [pickle.loads(pickled) for pickled in board]
            barrier.wait(60)
            return values

        def average(self, tensors, weight):
            parts = self.gather(([tensor.clone() for tensor in tensors], weight))
            total = sum(weight for _, weight in parts)
            for index, tensor in enumerate(tensors):
                tensor.copy_(sum(others[index] * weight for others, weight in parts) / total)

        def sum(self, tensor):
            return sum(self.gather(tensor.clone()))

    return [Worker(rank) for rank in range(size)]


def together(work, size=2):
    """Return `work(worker)` of each worker of a group, or raise the first error."""
    results, errors = {}, []

    def run(worker):
        try:
            results[worker.rank] = work(worker)
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
    return [results[rank] for rank in range(size)]
