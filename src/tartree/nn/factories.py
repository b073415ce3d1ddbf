"""Decision functions with their settings, as plain records: what `decision=` of an estimator takes, and files hold.

A record is called with structure, number of features and members, and makes the module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from tartree.nn.axis import AxisDecision
from tartree.nn.backbones import BackboneDecision, ConvBackbone, LayeredDecision, Shape, check_shape
from tartree.nn.soft import SoftDecision
from tartree.nn.subspaces import SubspaceDecision
from tartree.structure import Structure


@dataclass(frozen=True)
class Axis:
    """Makes `AxisDecision`: one feature and one threshold for each node."""

    slope: float = 8.0

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        return AxisDecision(structure, n_features, slope=self.slope, members=members)


@dataclass(frozen=True)
class Soft:
    """Makes `SoftDecision`: a linear filter and a learned inverse temperature for each node."""

    sharpness: float = 1.0

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        return SoftDecision(structure, n_features, sharpness=self.sharpness, members=members)


@dataclass(frozen=True)
class Subspace:
    """Makes `SubspaceDecision`: a perceptron for each node on a random part of the features."""

    share: float = 0.5
    layers: int = 1
    hidden: int = 16
    dropout: float = 0.0

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        return SubspaceDecision(structure, n_features, **asdict(self), members=members)


@dataclass(frozen=True)
class Backbone:
    """Makes `BackboneDecision` with a network of your own, called with the number of features."""

    make: Callable[[int], nn.Module]
    width: int
    share: float = 1.0

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        return BackboneDecision(structure, self.make(n_features), self.width, share=self.share, members=members)


@dataclass(frozen=True)
class Conv:
    """Makes `BackboneDecision` with a `ConvBackbone`, for rows that are images of one shape.

    Without a shape, rows are square images with one channel, or, where their length is no square, images of height 1.
    """

    shape: Shape | None = None
    channels: int = 32
    width: int = 128
    dropout: float = 0.3
    shift: int = 0
    flip: bool = False
    share: float = 1.0

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
    """Makes `LayeredDecision`: a block of convolutions for each layer of nodes."""

    shape: Shape | None = None
    channels: int = 8

    def __call__(self, structure: Structure, n_features: int, members: int) -> nn.Module:
        return LayeredDecision(structure, n_features, shape=self.shape, channels=self.channels, members=members)


#: Those that a file can hold, by name: all of their settings are plain data.
FACTORIES: dict[str, Any] = {cls.__name__: cls for cls in (Axis, Soft, Subspace, Conv, Layered)}


def to_plain(factory: Any) -> dict[str, Any] | None:
    """A record as plain data for a file; None for code of your own.

    >>> to_plain(Axis(slope=2.0))
    {'name': 'Axis', 'slope': 2.0}
    """
    name = type(factory).__name__
    if FACTORIES.get(name) is not type(factory):
        return None
    return {"name": name, **asdict(factory)}


def from_plain(data: Any) -> Any:
    """The record of `to_plain`; ValueError where there is none of that name or with such settings."""
    if not isinstance(data, dict) or data.get("name") not in FACTORIES:
        raise ValueError(f"a decision must be one of {', '.join(FACTORIES)}, however: {data!r}")
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "name"}
    return FACTORIES[data["name"]](**settings)
