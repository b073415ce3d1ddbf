"""Tensors of a GPU that is not there, for decisions that look at their shape, precision and device only."""

import torch


class Sized:
    """A tensor on a GPU, for who only looks at it."""

    def __init__(self, *shape, dtype=torch.float32, device="cuda"):
        self.shape, self.dtype, self.device = torch.Size(shape), dtype, torch.device(device)

    def dim(self):
        return len(self.shape)
