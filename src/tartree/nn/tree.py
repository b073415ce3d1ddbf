"""Tree: a structure with a decision function f, a leaf function g and a rule h to combine leaves."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from tartree import ops
from tartree.nn import dispatch
from tartree.nn.activations import Activation
from tartree.nn.best_leaf import best_leaf_logits
from tartree.nn.branching import Branching
from tartree.nn.decisions import MLPDecision, UniformDecision
from tartree.nn.factories import as_factory
from tartree.nn.leaves import ConstantLeaf, MLPLeaf
from tartree.nn.outputs import Output
from tartree.nn.products import GroupedMLP, affine
from tartree.ops import fused
from tartree.structure import Structure

MOST_LEAVES = 2**26
Selection = Literal["multi", "single"]
DecisionFactory = Callable[[Structure, int, int], nn.Module]  # (structure, n_features, members)
LeafFactory = Callable[[Structure, int, int, int], nn.Module]  # (structure, n_features, n_numbers, members)


class Leaves(NamedTuple):
    """Holds what a tree computes for a batch: arrival at the leaves and their raw outputs.

    Parameters
    ----------
    arrival : Tensor of shape (members, batch, leaves)
    numbers : Tensor of shape (members, batch or 1, leaves, numbers)
        Raw outputs of the leaves; the batch axis is 1 if they are constant.
    """

    arrival: Tensor  # (members, batch, leaves)
    numbers: Tensor  # (members, batch, leaves, numbers); a batch axis of 1 if leaves are constant


class Tree(nn.Module):
    """Predicts by a tree, or `members` trees of the same structure side by side.

    Parameters
    ----------
    structure : Structure
    decision : nn.Module
        f: input to logits, (members, batch, structure.n_logits).
    leaf : nn.Module
        g: input to raw outputs of leaves, (members, batch or 1, leaves, output.n_numbers).
    output : Output
        Meaning of the raw outputs: `Classes`, `Values` or `Gaussian`.
    branching : Branching, optional
        Logits to arrivals; softmax by default.

    Examples
    --------
    >>> from tartree.nn import Classes, Tree
    >>> tree = Tree.build(Structure(3), n_features=4, output=Classes(3))
    >>> tree.predict(torch.zeros(5, 4)).shape  # (members, batch, classes)
    torch.Size([1, 5, 3])
    """

    def __init__(
        self,
        structure: Structure,
        decision: nn.Module,
        leaf: nn.Module,
        output: Output,
        branching: Branching | None = None,
    ) -> None:
        super().__init__()
        self.structure = structure
        self.decision = decision
        self.leaf = leaf
        self.output = output
        self.branching = Branching(structure) if branching is None else branching

    @classmethod
    def build(
        cls,
        structure: Structure,
        n_features: int,
        output: Output,
        *,
        decision_layers: int = 1,
        leaf_layers: int = 1,
        hidden: int = 100,
        share: Literal["node", "layer"] = "node",
        dropout: float = 0.0,
        branching: str | Activation | ops.ActivationFunction = "softmax",
        temperature: float | Literal["learned"] = 1.0,
        members: int = 1,
        decision: DecisionFactory | None = None,
        leaf: LeafFactory | None = None,
    ) -> Tree:
        """Make a tree from settings.

        Parameters
        ----------
        structure : Structure
        n_features : int
        output : Output
        decision_layers : int, default=1
            H of the paper: linear maps of a decision.
        leaf_layers : int, default=1
            L of the paper: linear maps of a leaf; 0 for constant leaves.
        hidden : int, default=100
            Hidden units of each node and leaf.
        share : {"node", "layer"}, default="node"
            Who shares hidden units of decisions.
        dropout : float, default=0.0
        branching : str, Activation or callable, default="softmax"
        temperature : float or "learned", default=1.0
        members : int, default=1
        decision : callable or nn.Module, optional
            Replaces f: a function of structure, features and members that makes a module; or a network
            from (batch, features) to (batch, width), which is copied, see `Backbone`.
        leaf : callable, optional
            Replaces g: a function of structure, features, raw outputs of a leaf and members that makes a
            module.

        Returns
        -------
        Tree
        """
        for name, value, least in [
            ("n_features", n_features, 0),
            ("decision_layers", decision_layers, 0),
            ("leaf_layers", leaf_layers, 0),
            ("members", members, 1),
        ]:
            if not isinstance(value, numbers.Integral) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        if not isinstance(structure, Structure):
            raise ValueError(f"structure must be a Structure, got {structure!r}; for a binary tree, Structure(depth)")
        if structure.n_leaves > MOST_LEAVES:
            raise ValueError(
                f"a tree must have at most {MOST_LEAVES:,} leaves to fit into memory, got {structure} with "
                f"{structure.n_leaves:,}; lower its depth"
            )
        if decision is not None:
            f = as_factory(decision)(structure, n_features, members)
        elif decision_layers == 0 or structure.n_logits == 0:
            f = UniformDecision(structure, members)
        else:
            f = MLPDecision(
                structure,
                n_features,
                layers=decision_layers,
                hidden=hidden,
                share=share,
                dropout=dropout,
                members=members,
            )
        g: nn.Module
        if leaf is not None:
            g = leaf(structure, n_features, output.n_numbers, members)
        elif leaf_layers == 0:
            g = ConstantLeaf(structure, output.n_numbers, members=members)
        else:
            g = MLPLeaf(
                structure,
                n_features,
                output.n_numbers,
                layers=leaf_layers,
                hidden=hidden,
                dropout=dropout,
                members=members,
            )
        return cls(structure, f, g, output, Branching(structure, branching, temperature, members=members))

    @property
    def width(self) -> int:
        """Elements of the widest tensor of a prediction, for each row and member."""
        leaves_and_nodes = self.output.n_numbers * self.structure.n_leaves + sum(self.structure.widths)
        return max([leaves_and_nodes, *(module.width for module in self.modules() if isinstance(module, GroupedMLP))])

    def extra_repr(self) -> str:
        return f"{self.structure}, {self.output}"

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        """Draw new parameters.

        Parameters
        ----------
        generators : sequence of torch.Generator, optional
            One for each member, which then draws the same whatever the other members are.
        """
        for module in (self.decision, self.leaf):
            if reset := getattr(module, "reset_parameters", None):
                reset(generators)
        if self.branching.log_scale is not None:
            nn.init.zeros_(self.branching.log_scale)

    def forward(self, x: Tensor) -> Leaves:
        """Compute arrivals and raw outputs of the leaves.

        Parameters
        ----------
        x : Tensor of shape (batch, features), shared by the members, or (members, batch, features)

        Returns
        -------
        Leaves
        """
        if x.dim() not in (2, 3) or not x.is_floating_point():
            raise ValueError(
                "input must be floating-point rows, (batch, features) or (members, batch, features), "
                f"got {x.dtype} of shape {tuple(x.shape)}"
            )
        ops.check_finite("input", x)
        return self.checked(self.decision(x), self.leaf(x))

    def checked(self, logits: Tensor, leaf_logits: Tensor) -> Leaves:
        """Return arrivals and raw outputs from those of f and g, if these have the right shapes.

        Parameters
        ----------
        logits : Tensor of shape (members, batch, logits)
        leaf_logits : Tensor of shape (members, batch or 1, leaves, numbers)

        Returns
        -------
        Leaves
        """
        self.check_shapes(logits, leaf_logits)
        return Leaves(self.branching(logits), leaf_logits)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None]:
        """Return the outputs of f and g, and the biases that are still to be added to each, or None.

        Parameters
        ----------
        x : Tensor of shape (batch, features) or (members, batch, features)

        Returns
        -------
        logits : Tensor of shape (members, batch, logits)
        bias : Tensor of shape (members, logits) or None
        leaf_logits : Tensor of shape (members, batch or 1, leaves, numbers)
        leaf_bias : Tensor of shape (members, leaves, numbers) or None
        """
        if dispatch.joins_products(self, x):
            logits, bias, leaf_logits, leaf_bias = self._joint_parts(x)
        else:
            logits, bias = self.decision_parts(x)
            g = self.leaf
            leaf_logits, leaf_bias = g.parts(x) if dispatch.adds_bias_later(g) else (g(x), None)
            self.check_shapes(logits, leaf_logits)
        if leaf_bias is not None and leaf_logits.shape[1] == 1:  # one row: kernels take its leaves for constant ones
            leaf_logits, leaf_bias = leaf_logits + leaf_bias.unsqueeze(1), None
        return logits, bias, leaf_logits, leaf_bias

    def _joint_parts(self, x: Tensor) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None]:
        """Return the parts of linear decisions and linear leaves of one member, from one product for both."""
        f, g = self.decision, self.leaf
        assert isinstance(f, MLPDecision)
        assert isinstance(g, MLPLeaf)
        weights = [f.mlp.weights[0], g.mlp.weights[0]]
        rows = affine(x, torch.cat(weights, dim=1))  # (1, logits and leaf logits, batch)
        logits, leaf_logits = rows.split([w.shape[1] for w in weights], dim=1)
        leaf_logits = leaf_logits.unflatten(1, (self.structure.n_leaves, -1)).movedim(-1, 1)
        self.check_shapes(logits.transpose(-1, -2), leaf_logits)
        leaf_bias = g.mlp.biases[0].unflatten(1, leaf_logits.shape[2:])
        return logits.transpose(-1, -2), f.mlp.biases[0], leaf_logits, leaf_bias

    def decision_parts(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the logits, and the bias that is still to be added, or None.

        Parameters
        ----------
        x : Tensor of shape (batch, features) or (members, batch, features)

        Returns
        -------
        logits : Tensor of shape (members, batch, logits)
        bias : Tensor of shape (members, logits) or None
        """
        f = self.decision
        return f.parts(x) if dispatch.adds_bias_later(f) else (f(x), None)

    def check_shapes(self, logits: Tensor, leaf_logits: Tensor) -> None:
        """Raise unless the outputs of f and g have the right shapes.

        Parameters
        ----------
        logits : Tensor
        leaf_logits : Tensor
        """
        if logits.dim() != 3:
            raise ValueError(
                f"the decision must give (members, batch, {self.structure.n_logits}), "
                f"got {tuple(logits.shape)} from {type(self.decision).__name__}"
            )
        members, batch, _ = logits.shape
        shape = (self.structure.n_leaves, self.output.n_numbers)
        if leaf_logits.dim() != 4 or leaf_logits.shape[2:] != shape or leaf_logits.shape[1] not in (1, batch):
            raise ValueError(
                f"the leaf must give ({members}, {batch} or 1, {shape[0]}, {shape[1]}), "
                f"got {tuple(leaf_logits.shape)} from {type(self.leaf).__name__}"
            )

    def arrivals(self, x: Tensor) -> list[Tensor]:
        """Return the arrival at every layer, root first.

        Parameters
        ----------
        x : Tensor of shape (batch, features), shared by the members, or (members, batch, features)

        Returns
        -------
        list of Tensor of shape (members, batch, nodes)
        """
        return self.branching.arrivals(self.decision(x))

    def predict(self, x: Tensor, selection: Selection = "multi") -> Tensor:
        """Predict probabilities of classes, values, or moments, with each member.

        As everywhere in torch, call `eval()` before: in training mode, dropout makes predictions random.

        Parameters
        ----------
        x : Tensor of shape (batch, features), shared by the members, or (members, batch, features)
        selection : {"multi", "single"}, default="multi"

        Returns
        -------
        Tensor of shape (members, batch, ...)
        """
        if selection == "single" and (chosen := best_leaf_logits(self, x)) is not None:
            return self.output.mean(chosen).squeeze(2)
        if selection in ("multi", "single") and not torch.is_grad_enabled() and dispatch.fuses(self, x):
            predict = fused.probabilities if selection == "multi" else fused.probabilities_of_best
            return predict(*self.parts(x), self.structure)
        arrival, numbers = self(x)
        return combine(arrival, self.output.mean(numbers), selection)


def combine(arrival: Tensor, values: Tensor, selection: Selection) -> Tensor:
    """Combine the leaves: the function h of the paper.

    Parameters
    ----------
    arrival : Tensor of shape (members, batch, leaves)
    values : Tensor of shape (members, batch or 1, leaves, ...)
    selection : {"multi", "single"}
        The mean of the leaves weighted by arrival (Eq. 5), or the leaf of the largest arrival (Eq. 6).

    Returns
    -------
    Tensor of shape (members, batch, ...)
    """
    if selection not in ("multi", "single"):
        raise ValueError(f"selection must be 'multi' or 'single', got {selection!r}")
    if selection == "single":
        return _pick_leaves(values, arrival.argmax(-1))
    if values.shape[1] == 1:
        dtype = torch.promote_types(arrival.dtype, values.dtype)
        return arrival.to(dtype) @ values[:, 0].to(dtype)
    return (arrival.unsqueeze(-1) * values).sum(2)


def _pick_leaves(values: Tensor, leaf: Tensor) -> Tensor:
    """Return the value of one leaf of each row, (members, batch, ...), from (members, batch or 1, leaves, ...)."""
    if values.shape[1] == 1:
        return torch.take_along_dim(values[:, 0], leaf[..., None], dim=1)
    return torch.take_along_dim(values, leaf[..., None, None], dim=2).squeeze(2)
