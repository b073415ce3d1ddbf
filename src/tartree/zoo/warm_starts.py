"""Warm starts from CART: a grown tree made soft, its leaves linear, and trained on by gradient."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from tartree.estimators import TartClassifier, TartRegressor
from tartree.model import Prepared
from tartree.model.memory_source import MemorySource, number_of_rows
from tartree.model.spec import generators
from tartree.training import Recipe, train
from tartree.zoo.interop.imported_model import ImportedClassifier
from tartree.zoo.soft_tree import import_one_tree, prepare_soft_tree, structure_of
from tartree.zoo.temperature import choose_temperature

RECIPE = Recipe(epochs=100, learning_rate=0.01, decision_decay=1.0, leaf_decay=0.1)
STEPS = 1000  # of a training by default: a large table, whose tree has many leaves, gets fewer epochs
#: Parameters of the structure and its functions, which come from the tree.
TREE_PARAMETERS = ("depth", "window", "stride", "decision", "leaf", "decision_layers", "leaf_layers", "members")
Estimator = TartClassifier | TartRegressor


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
) -> Estimator:
    """Train on from a decision tree: soften it, make its leaves linear, and fine-tune all of it.

    Parameters
    ----------
    source : estimator
        A fitted decision tree of scikit-learn, or one that `from_sklearn` imported.
    X, y : table and target
        Rows that the tree was fitted to.
    temperature : float, optional
        Of the sigmoids at the start, in standard deviations of a feature. By default the one of 0.02, 0.05, 0.1, 0.2,
        0.4 and 0.8 with the best likelihood in a cross-validation of trees that are grown as the source was. An
        imported tree cannot be grown again; its leaves alone are cross-validated, which favours lower temperatures.
    sample_weight : array of shape (rows,), optional
        Weights of rows, in the leaves at the start and in training; use those that the tree was fitted with.
    recipe : Recipe, optional
        How it is trained. By default 100 epochs, fewer if those would be more than 1,000 steps: above 10,000 rows.
    random_state : int, RandomState or None
    **parameters
        Of `TartClassifier` or `TartRegressor`, such as ``selection`` or ``device``; those of the structure come from
        the tree, and so does ``class_weight`` by default. ``early_stopping=True`` holds rows out; "auto" never does,
        since the tree has seen all of them.

    Returns
    -------
    TartClassifier or TartRegressor
        Fitted, with the structure of the tree, linear decisions that began with one feature, and linear leaves.
        `temperature_` is the temperature that was used. It cannot be fitted again, since its parameters do not
        describe its structure; with ``warm_start=True`` training goes on. For the same reason a clone, as in
        `cross_val_score`, is an ordinary tree: grow the tree and call this in each fold.

    Raises
    ------
    ValueError
        If the source is not a single tree that compares numbers, or a parameter comes from the tree.

    Notes
    -----
    Leaves begin with the weighted counts of X and y; so a tree that was pruned, fitted to other rows or grown for
    medians begins with leaves that differ from those of the source.

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
    stopping = parameters.pop("early_stopping", "auto")
    if stopping not in (True, False, "auto"):
        raise ValueError(
            f"early_stopping must be True, False or 'auto' for a warm start, got {stopping!r}; a refit would begin "
            "without the tree"
        )
    parameters |= {"early_stopping": stopping is True, "recipe": RECIPE if recipe is None else recipe}
    if recipe is None and parameters.get("epochs") is None:
        batch_size = parameters.get("batch_size") or RECIPE.batch_size
        n_batches = replace(RECIPE, batch_size=batch_size).n_batches(number_of_rows(X))
        parameters["recipe"] = replace(RECIPE, epochs=_default_epochs(n_batches))
    model, prepared = _soften(source, X, y, temperature, sample_weight, random_state, parameters)
    spec, validation = prepared.spec, None
    rng = check_random_state(random_state)  # its first draws serve training: no weight of a soft tree is drawn
    if stopping is True:
        rows, validation = prepared.source.split_rows(spec, rng, prepared.device)
    else:
        rows = prepared.source.all_rows(prepared.device)
    history = train(
        prepared.tree,
        rows,
        spec.recipe,
        generator=generators([rng.randint(np.iinfo(np.int32).max)])[0],
        validation=validation,
        selection=spec.selection,
        callbacks=spec.callbacks,
        verbose=spec.verbose,
    )
    return model.adopt(prepared.finish(history))


def _default_epochs(n_batches: int) -> int:
    """Return the number of epochs for a number of batches."""
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
) -> Estimator:
    """Replace the thresholds of a decision tree by sigmoids, and let its leaves count rows, without training.

    Parameters
    ----------
    source : estimator
    X, y : table and target
    temperature : float, optional
    sample_weight : array of shape (rows,), optional
    random_state : int, RandomState or None
    **parameters
        All as in `warm_start`.

    Returns
    -------
    TartClassifier or TartRegressor
        See `warm_start`.

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
    model, prepared = _soften(source, X, y, temperature, sample_weight, random_state, parameters)
    return model.adopt(prepared.finish(None))


def _soften(
    source: Any,
    X: Any,
    y: ArrayLike,
    temperature: float | None,
    sample_weight: ArrayLike | None,
    random_state: Any,
    parameters: dict[str, Any],
) -> tuple[Estimator, Prepared]:
    """Return an estimator without a model, and its soft tree before training."""
    imported = import_one_tree(source)
    for name in TREE_PARAMETERS:
        if name in parameters:
            raise ValueError(f"{name} comes from the tree, got {name}={parameters[name]!r}; leave it out")
    if temperature is not None and not (
        isinstance(temperature, numbers.Real) and 0 < float(temperature) < float("inf")
    ):
        raise ValueError(f"temperature must be a positive number, got {temperature!r}")
    estimator: type[Estimator] = TartRegressor
    if isinstance(imported, ImportedClassifier):
        estimator = TartClassifier
        parameters = {"class_weight": getattr(source, "class_weight", None), **parameters}
    parameters = {"readable": False, **parameters}  # the tree at hand is another model than the default
    model = estimator(random_state=random_state, **parameters)
    if temperature is None:
        plain = estimator(
            readable=False, **{name: parameters[name] for name in ("class_weight", "device") if name in parameters}
        )
        temperature = choose_temperature(source, plain.spec(), X, y, sample_weight)
    structure = structure_of(imported)
    if structure.is_regular:
        model.depth = structure.depth
    return model, prepare_soft_tree(imported, model.spec(), MemorySource(X, y, sample_weight), temperature)
