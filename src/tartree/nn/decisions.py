"""Decision functions f: the logits of all nodes, ``(members, batch, structure.n_logits)``, from the input.

A decision of your own is any module with that output; it may have ``reset_parameters(generators)`` as these do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from tartree.nn.families import Family
from tartree.nn.products import GroupedMLP
from tartree.structure import Structure


class UniformDecision(Family):
    """No decision (H = 0): every node sends the same share to each child, so the leaves are an ensemble."""

    is_fixed = True

    def __init__(self, structure: Structure, members: int = 1) -> None:
        super().__init__()
        self.structure = structure
        self.members = members

    def forward(self, x: Tensor) -> Tensor:
        return x.new_zeros((self.members, x.shape[-2], self.structure.n_logits))


class MLPDecision(Family):
    """Linear decisions (one layer, H = 1) or multilayer perceptrons (H > 1), with ELU and dropout.

    Parameters
    ----------
    structure : Structure
    n_features : int
    layers : int, default=1
    hidden : int, default=100
        Hidden units of each node, or of each layer of the tree.
    share : {"node", "layer"}, default="node"
        Who shares hidden units: nobody but the node itself, or all nodes of a layer of the tree.
    dropout : float, default=0.0
        Share of hidden units that are left out in training.
    members : int, default=1
    """

    def __init__(
        self,
        structure: Structure,
        n_features: int,
        *,
        layers: int = 1,
        hidden: int = 100,
        share: Literal["node", "layer"] = "node",
        dropout: float = 0.0,
        members: int = 1,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers must be at least 1, got {layers!r}; for no decision use UniformDecision")
        if share not in ("node", "layer"):
            raise ValueError(f"share must be 'node' or 'layer', got {share!r}")
        self.mlp = GroupedMLP(
            n_features,
            logits_per_node(structure) if share == "node" else [n for n in structure.layer_logits if n],
            layers=layers,
            hidden=hidden,
            dropout=dropout,
            members=members,
        )

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        self.mlp.reset_parameters(generators)

    @property
    def perceptrons(self) -> GroupedMLP:
        return self.mlp

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.mlp(x)
        return logits.transpose(-1, -2)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The logits without their biases, and the biases, (members, logits)."""
        logits, bias = self.mlp.parts(x)
        return logits.transpose(-1, -2), bias


def logits_per_node(structure: Structure) -> list[int]:
    """Number of logits of each node that decides, in order."""
    sizes = [0] * structure.n_decisions
    for fan in structure.fans:
        for node in fan.nodes:
            sizes[node] = fan.logits.shape[1]
    return sizes
