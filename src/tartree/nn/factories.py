"""Decision and leaf functions with their settings, as plain records: what `decision=` and `leaf=` of an estimator take,
and files hold.

The record of a decision is called with structure, number of features and members, that of a leaf with structure,
number of features, numbers of a leaf and members; both make the module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from tartree.nn.axis_decision import AxisDecision
from tartree.nn.backbones import BackboneDecision, ConvBackbone, LayeredDecision, Shape, check_shape
from tartree.nn.path_leaf import PathLeaf
from tartree.nn.piecewise_leaf import PieceLeaf
from tartree.nn.soft_decision import SoftDecision
from tartree.nn.subspace_decision import SubspaceDecision
from tartree.structure import Structure


@dataclass(frozen=True)
class Axis:
    """Makes `AxisDecision`: one feature and one threshold for each node.

    Parameters
    ----------
    slope : float, default=8.0
        Of the sigmoid in training.
    """

    slope: float = 8.0
    layers: ClassVar[int] = 1  # H of the paper

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        return AxisDecision(structure, n_features, slope=self.slope, members=members)


@dataclass(frozen=True)
class Soft:
    """Makes `SoftDecision`: a linear filter and a learned inverse temperature for each node.

    Parameters
    ----------
    sharpness : float, default=1.0
        Inverse temperature at the start.
    """

    sharpness: float = 1.0
    layers: ClassVar[int] = 1

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        return SoftDecision(structure, n_features, sharpness=self.sharpness, members=members)


@dataclass(frozen=True)
class Subspace:
    """Makes `SubspaceDecision`: a perceptron for each node on a random part of the features.

    Parameters
    ----------
    share : float, default=0.5
        Fraction of the features that a node sees.
    layers : int, default=1
    hidden : int, default=16
    dropout : float, default=0.0
    """

    share: float = 0.5
    layers: int = 1
    hidden: int = 16
    dropout: float = 0.0

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        return SubspaceDecision(structure, n_features, **asdict(self), members=members)


@dataclass(frozen=True)
class Backbone:
    """Makes `BackboneDecision` with a network of the user's own, from (batch, features) to (batch, width).

    Parameters
    ----------
    make : nn.Module or callable
        A module, which is copied for every fit, or a function of the number of features that returns one.
    width : int, optional
        Width of the module's output, checked by a trial.
    share : float, default=1.0
        Fraction of the output that a member sees.
    """

    make: Callable[[int], nn.Module] | nn.Module
    width: int | None = None
    share: float = 1.0

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        network = copy.deepcopy(self.make) if isinstance(self.make, nn.Module) else self.make(n_features)
        width = width_of(network, n_features)
        if self.width not in (None, width):
            raise ValueError(f"width must be that of the network's output, {width}, got {self.width}")
        return BackboneDecision(structure, network, width, share=self.share, members=members)


def width_of(network: nn.Module, n_features: int) -> int:
    """Return the width of a network's output, by a trial.

    >>> width_of(nn.Linear(4, 3), 4)
    3
    """
    if not isinstance(network, nn.Module):
        raise TypeError(f"a backbone must be an nn.Module, got {type(network).__name__}")
    modes = [(module, module.training) for module in network.modules()]
    like = next((value for value in network.parameters() if value.is_floating_point()), torch.empty(0))
    try:
        with torch.no_grad():  # not in training mode, where batch statistics would be updated
            output = network.eval()(torch.zeros(2, n_features, dtype=like.dtype, device=like.device))
    except (RuntimeError, ValueError, IndexError) as error:
        raise ValueError(f"a backbone must take (batch, {n_features}) rows, but raised: {error}") from error
    finally:
        for module, mode in modes:
            module.training = mode
    if not isinstance(output, Tensor) or output.dim() != 2 or len(output) != 2:
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(f"a backbone must return (batch, width), got {shape} for 2 rows; add nn.Flatten()")
    return int(output.shape[1])


def as_factory(decision: Any) -> Any:
    """Return a factory of decisions: a `Backbone` for a module; a function is one already."""
    return Backbone(decision) if isinstance(decision, nn.Module) else decision


@dataclass(frozen=True)
class Conv:
    """Makes `BackboneDecision` with a `ConvBackbone`, for rows that are images of one shape.

    Without a shape, rows are square images with one channel, or, if their length is no square, images of height 1.

    Parameters
    ----------
    shape : (channels, height, width), optional
    channels : int, default=32
    width : int, default=128
    dropout : float, default=0.3
    shift : int, default=0
    flip : bool, default=False
    share : float, default=1.0
        As for `BackboneDecision`; the others as for `ConvBackbone`.
    """

    shape: Shape | None = None
    channels: int = 32
    width: int = 128
    dropout: float = 0.3
    shift: int = 0
    flip: bool = False
    share: float = 1.0
    layers: ClassVar[int] = 8  # six convolutions, a dense layer, and the linear map of a node

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        side = round(n_features**0.5)
        guess: Shape = (1, side, side) if side * side == n_features else (1, 1, n_features)
        backbone = ConvBackbone(
            check_shape(self.shape or guess, n_features),
            channels=self.channels,
            width=self.width,
            dropout=self.dropout,
            shift=self.shift,
            flip=self.flip,
        )
        return BackboneDecision(structure, backbone, self.width, share=self.share, members=members)


@dataclass(frozen=True)
class Layered:
    """Makes `LayeredDecision`: a block of convolutions for each layer of nodes.

    Parameters
    ----------
    shape : (channels, height, width), optional
    channels : int, default=8
    """

    shape: Shape | None = None
    channels: int = 8

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        return LayeredDecision(structure, n_features, shape=self.shape, channels=self.channels, members=members)


@dataclass(frozen=True)
class Pieces:
    """Makes `PieceLeaf`: perceptrons on features and their piecewise-linear encoding.

    Parameters
    ----------
    layers : int, default=2
    hidden : int, default=100
    dropout : float, default=0.0
    pieces : int, default=8
        Bins of each feature.
    mixed : bool, default=False
        Whether every second member sees no bins.

    Examples
    --------
    >>> from tartree import TartClassifier
    >>> model = TartClassifier(leaf=Pieces(layers=3, pieces=8))
    """

    layers: int = 2
    hidden: int = 100
    dropout: float = 0.0
    pieces: int = 8
    mixed: bool = False

    def __call__(self, structure: Structure, n_features: int, n_numbers: int, members: int) -> nn.Module:
        return PieceLeaf(structure, n_features, n_numbers, **asdict(self), members=members)


@dataclass(frozen=True)
class Path:
    """Makes `PathLeaf`: linear leaves, each the sum of the functions on its path. A trained model has plain leaves.

    Parameters
    ----------
    scale : float, default=0.125
        What the functions below the root are multiplied by: below 1, corrections learn slower and stay smaller.
    """

    scale: float = 0.125

    def __call__(self, structure: Structure, n_features: int, n_numbers: int, members: int) -> nn.Module:
        return PathLeaf(structure, n_features, n_numbers, scale=self.scale, members=members)


#: Factories that a file can hold, by name: all of their settings are plain data.
FACTORIES: dict[str, Any] = {cls.__name__: cls for cls in (Axis, Soft, Subspace, Conv, Layered)}
LEAF_FACTORIES: dict[str, Any] = {"Pieces": Pieces, "Path": Path}


def to_plain(factory: Any) -> dict[str, Any] | None:
    """Return a record as plain data for a file; None for code of the user's.

    >>> to_plain(Axis(slope=2.0))
    {'name': 'Axis', 'slope': 2.0}
    """
    name = type(factory).__name__
    if {**FACTORIES, **LEAF_FACTORIES}.get(name) is not type(factory):
        return None
    return {"name": name, **asdict(factory)}


def from_plain(data: Any, registry: dict[str, Any] = FACTORIES) -> Any:
    """Read what `to_plain` returned; raise ValueError for an unknown name or setting."""
    if not isinstance(data, dict) or data.get("name") not in registry:
        what = "leaf" if registry is LEAF_FACTORIES else "decision"
        raise ValueError(f"a {what} must be one of {', '.join(registry)}, got {data!r}")
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "name"}
    return registry[data["name"]](**settings)
