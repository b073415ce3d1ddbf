"""Networks below the decisions: one backbone shared by all nodes and members, or one block for each layer of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tartree.nn.families import Family
from tartree.nn.products import affine, draw_uniform_
from tartree.structure import Structure

Shape = tuple[int, int, int]  # channels, height, width


class BackboneDecision(Family):
    """One network for all nodes and members; only the last linear map belongs to the node (deep neural forests).

    Parameters
    ----------
    structure : Structure
    backbone : nn.Module
        Any module from (batch, features) to (batch, width).
    width : int
        Numbers that the backbone gives.
    share : float, default=1.0
        Share of these numbers that a member sees, drawn at random.
    members : int, default=1

    Notes
    -----
    The backbone has no members axis: its weights belong to all members. Early stopping member by member is thus not
    possible.
    """

    seen: Tensor

    def __init__(
        self, structure: Structure, backbone: nn.Module, width: int, *, share: float = 1.0, members: int = 1
    ) -> None:
        super().__init__()
        if not 0 < share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, got {share!r}")
        self.weight = nn.Parameter(torch.empty(members, structure.n_logits, width))  # first: it has the members axis
        self.bias = nn.Parameter(torch.empty(members, structure.n_logits))
        self.backbone = backbone
        self.n_seen = max(1, round(share * width))
        self.register_buffer("seen", torch.ones(members, 1, width, dtype=torch.bool))
        self.reset_parameters()

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        """Draw the weights of the nodes; the backbone keeps those that it was made with."""
        width = self.weight.shape[-1]
        draw_uniform_(self.weight, width**-0.5, generators)
        draw_uniform_(self.bias, width**-0.5, generators)
        for member in range(len(self.seen)):
            generator = None if generators is None else generators[member]
            rank = torch.rand(width, generator=generator).argsort().argsort()
            self.seen[member, 0] = rank < self.n_seen

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 2:
            raise ValueError(f"a shared backbone needs shared input, (batch, features), got {tuple(x.shape)}")
        return affine(self.backbone(x), self.weight * self.seen, self.bias).transpose(-1, -2)


class LayeredDecision(Family):
    """One block of convolutions for each layer of nodes: deeper nodes see more of them (neural regression forests).

    A row is a sequence of numbers with one channel, or an image. Block ``d`` works on what block ``d - 1`` gave; the
    nodes of layer ``d`` decide by a linear map of what block ``d`` gives. All of it belongs to the member.

    Parameters
    ----------
    structure : Structure
    n_features : int
    shape : (channels, height, width), optional
        Of an image; by default the row is a sequence, and the convolutions run along it.
    channels : int, default=8
        Of each block, and of each member.
    members : int, default=1
    """

    def __init__(
        self,
        structure: Structure,
        n_features: int,
        *,
        shape: Shape | None = None,
        channels: int = 8,
        members: int = 1,
    ) -> None:
        super().__init__()
        if channels < 1:
            raise ValueError(f"channels must be at least 1, got {channels!r}")
        self.shape = check_shape(shape, n_features) if shape is not None else (1, 1, n_features)
        self.kernel = (1, 3) if shape is None else (3, 3)
        self.layer_logits = [n for n in structure.layer_logits if n]
        self.members = members
        self.kernels, self.shifts = nn.ParameterList(), nn.ParameterList()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        size = self.shape[1] * self.shape[2]
        for d, logits in enumerate(self.layer_logits):
            inputs = self.shape[0] if d == 0 else channels
            self.kernels.append(torch.empty(members, channels, inputs, *self.kernel))
            self.shifts.append(torch.empty(members, channels))
            self.weights.append(torch.empty(members, logits, channels * size))
            self.biases.append(torch.empty(members, logits))
        self.reset_parameters()

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        for kernel, shift in zip(self.kernels, self.shifts, strict=True):
            bound = kernel[0, 0].numel() ** -0.5
            draw_uniform_(kernel, bound * 3**0.5, generators)  # keeps the spread of what goes through
            draw_uniform_(shift, bound, generators)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            draw_uniform_(weight, weight.shape[-1] ** -0.5, generators)
            draw_uniform_(bias, weight.shape[-1] ** -0.5, generators)

    def forward(self, x: Tensor) -> Tensor:
        x = x if x.dim() == 3 else x.unsqueeze(0).expand(self.members, -1, -1)  # (members, batch, features)
        batch = x.shape[1]
        if not self.layer_logits:  # a single leaf
            return x.new_zeros(self.members, batch, 0)
        # Members are groups of channels, so that one convolution serves all of them.
        maps = x.transpose(0, 1).reshape(batch, self.members * self.shape[0], *self.shape[1:])
        padding = (self.kernel[0] // 2, self.kernel[1] // 2)
        logits = []
        for kernel, shift, weight, bias in zip(self.kernels, self.shifts, self.weights, self.biases, strict=True):
            new = F.conv2d(maps, kernel.flatten(0, 1), shift.flatten(), padding=padding, groups=self.members)
            new = F.elu(new)
            maps = new + maps if new.shape == maps.shape else new  # a way past each block, so that deep ones learn too
            rows = maps.unflatten(1, (self.members, -1)).flatten(2)  # (batch, members, channels * size)
            logits.append(affine(rows.transpose(0, 1), weight, bias))
        return torch.cat(logits, dim=1).transpose(-1, -2)


class ConvBackbone(nn.Module):
    """A small convolutional network for images that come as rows: three blocks, pooling, and one dense layer.

    Parameters
    ----------
    shape : (channels, height, width)
    channels : int, default=32
        Of the first block; the second and third have twice and four times as many.
    width : int, default=128
        Numbers that it gives.
    dropout : float, default=0.3
        Before the dense layer.
    shift : int, default=0
        In training, images are moved at random by up to so many pixels.
    flip : bool, default=False
        In training, half of the images are mirrored.
    """

    def __init__(
        self,
        shape: Shape,
        *,
        channels: int = 32,
        width: int = 128,
        dropout: float = 0.3,
        shift: int = 0,
        flip: bool = False,
    ) -> None:
        super().__init__()
        self.shape, self.shift, self.flip = shape, shift, flip
        blocks: list[nn.Module] = []
        inputs = shape[0]
        for outputs in (channels, 2 * channels, 4 * channels):
            for _ in range(2):
                blocks += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
                inputs = outputs
            blocks += [nn.MaxPool2d(2, ceil_mode=True)]
        height, across = (-(-side // 8) for side in shape[1:])
        dense = nn.Linear(inputs * height * across, width)
        self.layers = nn.Sequential(*blocks, nn.Flatten(), nn.Dropout(dropout), dense, nn.BatchNorm1d(width), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        images = x.unflatten(-1, self.shape)  # (batch, channels, height, width)
        if self.training and (self.shift or self.flip):
            images = self._moved(images)
        numbers: Tensor = self.layers(images)
        return numbers

    def _moved(self, images: Tensor) -> Tensor:
        batch, _, height, width = images.shape
        rows = torch.arange(height, device=images.device).expand(batch, -1)
        columns = torch.arange(width, device=images.device).expand(batch, -1)
        if self.flip:
            mirrored = torch.rand(batch, 1, device=images.device) < 0.5
            columns = torch.where(mirrored, width - 1 - columns, columns)
        if self.shift:
            by = torch.randint(-self.shift, self.shift + 1, (2, batch, 1), device=images.device)
            images = F.pad(images, [self.shift] * 4)
            rows, columns = rows + by[0] + self.shift, columns + by[1] + self.shift
        flat = images.flatten(2)  # (batch, channels, pixels)
        index = rows.unsqueeze(2) * images.shape[3] + columns.unsqueeze(1)  # (batch, height, width)
        moved: Tensor = flat.gather(2, index.flatten(1).unsqueeze(1).expand(-1, flat.shape[1], -1))
        return moved.view(batch, -1, height, width)


def check_shape(shape: Shape, n_features: int) -> Shape:
    """The shape of an image, if it has as many numbers as a row has features."""
    if len(shape) != 3 or min(shape) < 1 or shape[0] * shape[1] * shape[2] != n_features:
        raise ValueError(
            f"shape must be (channels, height, width) with {n_features} elements, as the rows have, got {shape!r}; "
            "numeric='plain' keeps a feature for every column, also where all values are equal"
        )
    return shape
