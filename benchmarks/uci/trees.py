"""The four runs of a set, trained as members of one tree, each with the rows of its own run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tartree.model.memory_source import split_rows
from tartree.model.spec import EARLY_STOPPING_ROWS, REFIT_ROWS
from tartree.nn import Classes, Selection, Tree, combine
from tartree.nn.products import GroupedMLP
from tartree.training import History, MemberRows, Recipe, TensorRows, train
from uci.models import TreeModel
from uci.sets import StudySet

#: Largest number of values in a chunk at prediction.
CHUNK = {"cpu": 2**24, "cuda": 2**29}


def run_tree(
    model: TreeModel, data: StudySet, selections: Iterable[Selection], recipe: Recipe, seed: int = 0
) -> dict[Selection, list[float]]:
    """Return accuracies of each run by selection, from one training on the device of `data`."""
    tree = build(model, data, seed)
    fit(tree, model, data, recipe, seed)
    return score(tree, model, data, selections)


def build(model: TreeModel, data: StudySet, seed: int = 0) -> Tree:
    """Build an untrained tree; the members of a run are adjacent."""
    leaves: dict[str, Any] = {"leaf_layers": model.leaf_layers, "hidden": model.hidden, "dropout": model.dropout}
    if model.leaf is not None:
        leaves = {"leaf": model.leaf}
    tree = Tree.build(
        model.structure,
        data.x.shape[1],
        Classes(data.n_classes),
        decision_layers=model.decision_layers,
        members=data.runs * model.members,
        **leaves,
    )
    draw(tree, model, seed)
    return tree.to(data.x.device)


def draw(tree: Tree, model: TreeModel, seed: int = 0) -> None:
    """Draw new weights; the seed of a member depends only on its number."""
    members = next(tree.parameters()).shape[0]
    generators = [torch.Generator().manual_seed(member + members * seed) for member in range(members)]
    tree.reset_parameters(generators)
    if model.start == "he":
        draw_as_he(tree, generators)


@torch.no_grad()
def draw_as_he(tree: Tree, generators: list[torch.Generator]) -> None:
    """Draw weights from a normal distribution of variance 2 / inputs; biases are 0 (He et al. 2015)."""
    for module in tree.modules():
        if isinstance(module, GroupedMLP):
            for weight, bias in zip(module.weights, module.biases, strict=True):
                deviation = (2 / max(1, weight.shape[-1])) ** 0.5
                for member, generator in zip(weight, generators, strict=True):
                    member.copy_(deviation * torch.randn(member.shape, generator=generator))
                bias.zero_()


def fit(tree: Tree, model: TreeModel, data: StudySet, recipe: Recipe, seed: int = 0) -> None:
    """Train all members, with early stopping as the estimator would do it."""
    n_rows = round(sum(map(len, data.train)) / data.runs)
    stopping = model.early_stopping
    if stopping == "auto":
        stopping = False if n_rows < EARLY_STOPPING_ROWS else "refit" if n_rows < REFIT_ROWS else True
    if not stopping:
        learn(tree, model, data, recipe, data.train, seed=seed)
        return
    kept, held = zip(*(_hold_out(data, run, recipe) for run in range(data.runs)), strict=True)
    validation = gather(data, held, model.members)
    history = learn(tree, model, data, recipe, kept, validation=validation, seed=seed)
    if stopping == "refit":
        draw(tree, model, seed)
        learn(tree, model, data, recipe, data.train, keep_epoch=history.best_epoch, seed=seed)


def _hold_out(data: StudySet, run: int, recipe: Recipe) -> tuple[Tensor, Tensor]:
    rows = data.train[run]
    strata = data.y.cpu()[rows].numpy()
    kept, held = split_rows(len(rows), strata, recipe.validation_fraction, np.random.RandomState(run))
    return rows[kept], rows[held]


def learn(
    tree: Tree,
    model: TreeModel,
    data: StudySet,
    recipe: Recipe,
    train_rows: tuple[Tensor, ...],
    *,
    validation: TensorRows | MemberRows | None = None,
    keep_epoch: np.ndarray | None = None,
    seed: int = 0,
) -> History:
    history = train(
        tree,
        gather(data, train_rows, model.members),
        recipe,
        generator=torch.Generator().manual_seed(seed),
        validation=validation,
        keep_epoch=keep_epoch,
        selection=model.selection,
    )
    if history.interrupted:  # an interrupted training is no result
        raise KeyboardInterrupt
    return history


def gather(data: StudySet, parts: tuple[Tensor, ...], members: int) -> TensorRows | MemberRows:
    """Gather the rows of each run for its members, in one table if all runs use the same rows."""
    if all(torch.equal(rows, parts[0]) for rows in parts):
        index = parts[0].to(data.x.device)
        return TensorRows(data.x[index], data.y[index])
    return MemberRows.gather(TensorRows(data.x, data.y), parts, members)


@torch.no_grad()
def score(
    tree: Tree, model: TreeModel, data: StudySet, selections: Iterable[Selection]
) -> dict[Selection, list[float]]:
    """Return accuracies of each run on its test rows; the members of a run are averaged."""
    tree.eval()
    selections = list(selections)
    tested = torch.cat(data.test).unique()
    position = torch.full((len(data.x),), -1)
    position[tested] = torch.arange(len(tested))
    n_members = data.runs * model.members
    chunk = max(1, CHUNK[data.x.device.type] // (n_members * tree.width))
    right: dict[Selection, list[Tensor]] = {selection: [] for selection in selections}
    for index in tested.to(data.x.device).split(chunk):
        arrival, logits = tree(data.x[index])
        values = tree.output.mean(logits)
        for selection in selections:
            predicted = combine(arrival, values, selection)  # (members, chunk, classes)
            predicted = predicted.unflatten(0, (data.runs, model.members)).mean(1)  # (runs, chunk, classes)
            right[selection].append((predicted.argmax(-1) == data.y[index]).cpu())
    accuracies: dict[Selection, list[float]] = {}
    for selection, parts in right.items():
        by_run = torch.cat(parts, dim=1)  # (runs, tested rows)
        accuracies[selection] = [
            float(run[position[test]].double().mean()) for run, test in zip(by_run, data.test, strict=True)
        ]
    return accuracies
