"""Warm starts from CART: a grown tree made soft, its leaves linear, and trained on by gradient."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import column_or_1d

from tartree.estimators import TartClassifier, TartRegressor
from tartree.estimators.base import TREE_SETTINGS
from tartree.estimators.rows import check_equal_rows, number_of_rows
from tartree.nn import MLPDecision, MLPLeaf, Tree
from tartree.table import TableEncoder
from tartree.training import Recipe, train
from tartree.zoo.from_sklearn import from_sklearn
from tartree.zoo.imported import ImportedClassifier, ImportedModel
from tartree.zoo.splits import Floats, SplitTree

#: Temperatures to choose from, in standard deviations of a feature.
TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
GAP_LOGIT = 3.0  # how surely a gap goes the way that the tree learnt
PRIOR = 1.0  # rows that a leaf has of the whole table's distribution, beside its own
RECIPE = Recipe(epochs=100, learning_rate=0.01, decision_decay=1.0, leaf_decay=0.1)
STEPS = 1000  # of a training by default: a large table, whose tree has many leaves, gets fewer epochs
COST_SIZE = 2**24  # numbers of leaves at a time, when temperatures are compared
Model = TartClassifier | TartRegressor


def warm_start(
    source: Any,
    X: Any,
    y: ArrayLike,
    *,
    temperature: float | None = None,
    sample_weight: ArrayLike | None = None,
    recipe: Recipe | None = None,
    random_state: Any = None,
    **parameters: Any,
) -> Model:
    """Train on from a decision tree: soften it, make its leaves linear, and fine-tune all of it.

    Parameters
    ----------
    source : estimator
        A fitted decision tree of scikit-learn, or one that `from_sklearn` imported.
    X, y : table and target
        What the tree was fitted to.
    temperature : float, optional
        Of the sigmoids at the start, in standard deviations of a feature. By default it is fitted: that of
        `TEMPERATURES` with the best likelihood in a cross-validation of trees that are grown as the source was. An
        imported tree cannot be grown again; its leaves alone are cross-validated, which favours lower temperatures.
    sample_weight : array of shape (rows,), optional
        Weights of rows, in the leaves at the start and in training; give those that the tree was fitted with.
    recipe : Recipe, optional
        How it is trained. By default 100 epochs, fewer where those would be more than 1,000 steps: above 10,000 rows.
    random_state : int, RandomState or None
    **parameters
        Of `TartClassifier` or `TartRegressor`, such as ``selection`` or ``device``; those of the structure come from
        the tree, and so does ``class_weight`` where it is not given. ``early_stopping=True`` holds rows out;
        "auto" never does, since the tree has seen all of them.

    Returns
    -------
    TartClassifier or TartRegressor
        Fitted, with the structure of the tree, linear decisions that began with one feature, and linear leaves.
        `temperature_` is the temperature that was used. It cannot be fitted anew, since its parameters do not tell its
        structure; with ``warm_start=True`` training goes on. For the same reason a clone, as in `cross_val_score`, is
        an ordinary tree: grow the tree and call this in each fold.

    Notes
    -----
    Leaves begin with what they count of X and y, by weight; so a tree that was pruned, fitted to other rows or grown
    for medians begins with other leaves than its own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from tartree import zoo
    >>> X, y = load_iris(return_X_y=True)
    >>> cart = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> model = zoo.warm_start(cart, X, y, random_state=0)
    >>> bool(model.structure_.n_leaves == cart.get_n_leaves())
    True
    """
    model, target, weight = _softened(source, X, y, temperature, sample_weight, random_state, parameters)
    stopping = parameters.get("early_stopping", "auto")
    if stopping not in (True, False, "auto"):
        raise ValueError(
            f"early_stopping must be True, False or 'auto' for a warm start, however: early_stopping={stopping!r}; a "
            "refit would begin without the tree"
        )
    model.early_stopping = stopping is True
    rng = check_random_state(random_state)
    device = model._device()
    model.recipe = RECIPE if recipe is None else recipe
    if recipe is None and model.epochs is None:
        model.recipe = replace(RECIPE, epochs=_epochs(model._recipe().n_batches(number_of_rows(X))))
    strata = target.numpy() if isinstance(model, TartClassifier) else None
    fraction = model._recipe().validation_fraction
    rows, validation = model._rows(X, target, weight, strata, device, rng, fraction)
    model.history_ = train(
        model.tree_.to(device),
        rows,
        model._recipe(),
        generator=torch.Generator().manual_seed(int(rng.randint(np.iinfo(np.int32).max))),
        validation=validation,
        selection=model.selection,
        callbacks=model._callbacks(),
        verbose=model.verbose,
    )
    model.tree_.eval()
    return model


def _epochs(n_batches: int) -> int:
    """How often to go through so many batches, by default."""
    return max(1, min(RECIPE.epochs, STEPS // n_batches))


def soften(
    source: Any,
    X: Any,
    y: ArrayLike,
    *,
    temperature: float | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
    **parameters: Any,
) -> Model:
    """A decision tree with sigmoids in place of its thresholds, and leaves that count the rows of X; see `warm_start`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from tartree import zoo
    >>> X, y = load_iris(return_X_y=True)
    >>> cart = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> zoo.soften(cart, X, y, temperature=0.1).score(X, y) > 0.9
    True
    """
    return _softened(source, X, y, temperature, sample_weight, random_state, parameters)[0]


def _softened(
    source: Any,
    X: Any,
    y: ArrayLike,
    temperature: float | None,
    sample_weight: ArrayLike | None,
    random_state: Any,
    parameters: dict[str, Any],
) -> tuple[Model, torch.Tensor, Floats | None]:
    """The softened tree, and the target and the weights of rows as its training takes them."""
    imported = _one_tree(source)
    for name in ("depth", "window", "stride", "decision", "leaf", "decision_layers", "leaf_layers", "members"):
        if name in parameters:
            raise ValueError(f"{name} comes from the tree, however: {name}={parameters[name]!r} is given; leave it out")
    given: Any = temperature
    if given is not None and not (isinstance(given, numbers.Real) and 0 < float(given) < float("inf")):
        raise ValueError(f"temperature must be a positive number, however: {temperature=}")
    estimator = TartClassifier if isinstance(imported, ImportedClassifier) else TartRegressor
    if estimator is TartClassifier and getattr(source, "class_weight", None) is not None:
        parameters = {"class_weight": source.class_weight, **parameters}
    model = estimator(random_state=random_state, **parameters)
    if temperature is None:
        temperature = _fitted_temperature(source, X, y, sample_weight, parameters.get("class_weight"), model.device)
    structure, decisions, leaves = imported.splits_[0].layout()
    # What `fit` learns of a table and its target before it trains, with a single leaf; then the tree itself.
    model.depth, depth = 0, model.depth
    target, weight = model._prepare(X, y, sample_weight)
    model.depth = structure.depth if structure.is_regular else depth
    _check_classes(imported, model)
    model.structure_ = structure
    model._build({name: getattr(model, name) for name in TREE_SETTINGS})
    tree = imported.splits_[0]
    values, gaps = imported.encoder_.read(X)
    at = np.full(len(tree.left), -1)
    at[leaves] = np.arange(len(leaves))
    _write_leaves(model, at[tree.route(values, gaps)], target, weight)
    if isinstance(model.tree_.decision, MLPDecision):
        slope, bias = _soft_splits(tree, decisions, model.encoder_, temperature)
        with torch.no_grad():
            model.tree_.decision.mlp.weights[0].copy_(torch.from_numpy(slope).unsqueeze(0))
            model.tree_.decision.mlp.biases[0].copy_(torch.from_numpy(bias).unsqueeze(0))
    model.tree_.eval().to(model._device())
    model.temperature_ = temperature
    return model, target, weight


def _check_classes(imported: ImportedModel, model: Model) -> None:
    if isinstance(imported, ImportedClassifier) and isinstance(model, TartClassifier):
        new = sorted(set(model.classes_.tolist()) - set(imported.classes_.tolist()), key=str)
        if new:
            raise ValueError(f"y must have classes of the tree, {imported.classes_.tolist()}, however: {new[0]!r}")


def _one_tree(source: Any) -> ImportedModel:
    imported = source if isinstance(source, ImportedModel) else from_sklearn(source)
    reasons = {
        f"has {len(imported.splits_)} trees": len(imported.splits_) != 1,
        "sums what trees say, for a link function": imported.sum_.link != "identity",
        "splits levels": any(tree.levels for tree in imported.splits_),
    }
    if any(reasons.values()):
        reason = next(said for said, holds in reasons.items() if holds)
        raise ValueError(
            f"a warm start needs one decision tree that compares numbers, however: {type(source).__name__} {reason}"
        )
    return imported


def target_of(model: Model, y: ArrayLike) -> torch.Tensor:
    """The target as the trees of a fitted model learn it: class numbers, or standardised values."""
    if isinstance(model, TartClassifier):
        labels = column_or_1d(y)
        known = np.isin(labels, model.classes_)
        if not known.all():
            raise ValueError(
                f"y must have classes that the model knows, {model.classes_.tolist()}, however: "
                f"{labels[~known].tolist()[0]!r} in row {int(known.argmin())}"
            )
        return torch.from_numpy(np.searchsorted(model.classes_, labels).astype(np.int64))
    values = np.asarray(y, dtype=np.float64).reshape(-1, len(model.target_center_))
    return torch.from_numpy((values - model.target_center_) / model.target_scale_).float()


def _write_leaves(model: Model, leaf: NDArray[np.intp], target: torch.Tensor, weight: Floats | None) -> None:
    """Leaves that do not look at the input yet, and say what arrived of the target, with a little of all of it."""
    module = model.tree_.leaf
    assert isinstance(module, MLPLeaf)
    n_leaves, said = model.structure_.n_leaves, target.numpy()
    # Only what weights say of each other counts; a row of weight 0 is not there.
    own = np.ones(len(said)) if weight is None else weight / weight[weight > 0].mean()
    arrived = np.bincount(leaf, own, n_leaves)[:, None]  # (leaves, 1)

    def mean(values: Floats) -> Floats:  # of each leaf, drawn to that of all rows; (leaves, numbers)
        sums = np.stack([np.bincount(leaf, own * column, n_leaves) for column in values.T], axis=1)
        shared: Floats = (sums + PRIOR * np.average(values, axis=0, weights=own)) / (arrived + PRIOR)
        return shared

    if isinstance(model, TartClassifier):
        shares = mean(np.eye(len(model.classes_))[said])
        numbers = np.log(np.maximum(shares, np.finfo(np.float32).tiny))  # a class may weigh nothing
    else:
        center = mean(said.astype(np.float64))
        spread = np.sqrt(np.maximum(mean(np.square(said - center[leaf])), 1e-4))
        numbers = np.concatenate([center, np.log(np.expm1(spread))], axis=1)  # softplus gives the spread back
    with torch.no_grad():
        module.mlp.weights[0].zero_()
        module.mlp.biases[0].copy_(torch.from_numpy(numbers.ravel()).unsqueeze(0))


def _soft_splits(
    tree: SplitTree, decisions: NDArray[np.int64], encoder: TableEncoder, temperature: float
) -> tuple[Floats, Floats]:
    """Weights, (decisions, encoded features), and biases whose sigmoids stand for the splits."""
    weight, bias = np.zeros((len(decisions), len(encoder.features_))), np.zeros(len(decisions))
    places = {(feature.column, feature.kind): i for i, feature in enumerate(encoder.features_)}
    for row, node in enumerate(decisions):
        column = int(tree.feature[node])
        value = places.get((column, "value"), places.get((column, "level")))
        way = 1.0 if tree.gap_left[node] else -1.0
        mark = places.get((column, "missing"))
        if not np.isfinite(tree.threshold[node]) or value is None:  # numbers go one way, gaps another
            bias[row] = GAP_LOGIT if tree.threshold[node] > 0 else -GAP_LOGIT
            fill = bias[row]
        else:
            feature = encoder.features_[value]
            cut = feature.scaling.encode(np.array([tree.threshold[node]]))[0]
            weight[row, value], bias[row] = -1 / temperature, cut / temperature
            known: Any = encoder.columns_[column]
            filled = feature.scaling.encode(np.array([float(known.fill)]))[0]
            fill = (cut - filled) / temperature
        if mark is not None:
            weight[row, mark] = way * GAP_LOGIT - fill
    return weight, bias


def _fitted_temperature(
    source: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, class_weight: Any, device: Any
) -> float:
    """The temperature of the best likelihood in folds that are always the same, of trees grown as the source was.

    An imported tree cannot be grown again: its splits stay, and its leaves count the rows of each fold.
    """
    labels = np.asarray(y)
    n_rows = number_of_rows(X)
    check_equal_rows(n_rows, len(labels))
    n_folds = min(5, n_rows)
    if n_folds < 2:
        return TEMPERATURES[len(TEMPERATURES) // 2]
    weights = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    check_equal_rows(n_rows, len(weights))
    classes = hasattr(source, "classes_")
    rare = classes and np.unique(labels, return_counts=True)[1].min() < n_folds
    folds = (StratifiedKFold if classes and not rare else KFold)(n_folds, shuffle=True, random_state=0)
    counted = weights * compute_sample_weight(class_weight, labels) if classes else weights
    settings = {"device": device, **({"class_weight": class_weight} if classes else {})}
    cost = np.zeros(len(TEMPERATURES))
    for kept, held in folds.split(np.zeros(n_rows), labels):
        own = kept[counted[kept] > 0]
        if not len(own) or (classes and len(np.unique(labels[own])) < 2):
            continue
        inner = None if sample_weight is None else weights[own]
        grown = source
        if not isinstance(source, ImportedModel):
            grown = clone(source).fit(_take(X, own), labels[own], sample_weight=inner)
        first = soften(grown, _take(X, own), labels[own], temperature=1.0, sample_weight=inner, **settings)
        known = counted[held] > 0
        if isinstance(first, TartClassifier):
            known &= np.isin(labels[held], first.classes_)
        if not known.any():
            continue
        test = held[known]
        cost += _costs(first, _take(X, test), target_of(first, labels[test]), counted[test])
    return TEMPERATURES[int(np.argmin(cost))]


@torch.no_grad()
def _costs(model: Model, X: Any, target: torch.Tensor, weight: Floats) -> Floats:
    """Negative log likelihood of other rows at each temperature, summed by weight; the model has temperature 1."""
    tree: Tree = model.tree_
    device = model._device()
    x = model._encoded(X)
    total = np.zeros(len(TEMPERATURES))
    each = max(1, COST_SIZE // (tree.structure.n_leaves * tree.output.n_numbers))  # a large tree has large products
    for start in range(0, len(x), each):
        rows = slice(start, start + each)
        inputs, goal = x[rows].to(device), target[rows].to(device)
        logits, cost = tree.decision(inputs), tree.output.cost(tree.leaf(inputs), goal)  # costs: (1, rows, leaves)
        share = torch.from_numpy(weight[rows]).to(logits)
        for place, temperature in enumerate(TEMPERATURES):
            # As `losses.mixture`; the costs of the leaves are the same at every temperature.
            arrival = tree.branching(logits / temperature)
            joint = arrival.clamp_min(torch.finfo(arrival.dtype).tiny).log() - cost
            total[place] -= float((joint.logsumexp(-1) * share).sum())
    return total


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    return _safe_indexing(X if hasattr(X, "shape") else np.asarray(X), rows)
