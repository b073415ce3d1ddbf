"""`write_report`: data about a fitted model, written as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score

from tartree import __version__
from tartree.checks import check_integer
from tartree.explain.attribution.importances import importances
from tartree.explain.page.bundle import make_page
from tartree.explain.page.cross_validation import Validation
from tartree.explain.page.model_data import plain_column, plain_feature, plain_model
from tartree.explain.page.prediction_quality import QUANTILE_LEVELS, classification_quality, regression_quality
from tartree.explain.page.row_data import choose_rows, plain_columns
from tartree.explain.simplification.simplifier import simplification_path
from tartree.explain.tree_view.assembly import view
from tartree.explain.tree_view.views import TreeView
from tartree.explain.verification.certificates import Certificate
from tartree.model import FittedModel, HasModel, fitted_model
from tartree.nn.subtree import check_shrinkable

#: Maximum number of smaller models on a page, and of leaves of the largest of them, by default.
MOST_SIZES, MOST_LEAVES = 5, 32
#: Terms of a node that leaves share, on the page.
MOST_EFFECTS = 40


def write_report(
    estimator: FittedModel | HasModel,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    rows: int = 1000,
    title: str | None = None,
    sizes: Sequence[int] | None = None,
    validation: Validation | None = None,
) -> None:
    """Write a page about a fitted model: one HTML file that works offline, and computes predictions by itself.

    Parameters
    ----------
    estimator : fitted estimator or FittedModel
        Model to report on.
    X : table of shape (rows, columns)
        Rows to measure the model on. On rows it was not fitted to, measures estimate its quality on new rows.
    y : array of shape (rows,) or (rows, targets), or None
        True labels or values; without, the page has no measures of quality.
    path : str or path
        Path of the file.
    rows : int, default=1000
        Maximum number of rows that the page holds. Measures are of all rows.
    title : str, optional
        Title of the page.
    sizes : sequence of int, optional
        Numbers of leaves of the smaller models that a slider offers, each with its certificate. By default half of the
        leaves, a quarter and so on. They take most of the time; an empty sequence for no slider.
    validation : Validation, optional
        Result of a cross-validation, if the model was fitted to these rows. It is shown first, and the measures are
        labelled as those on training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=2, epochs=5, random_state=0).fit(X, y)
    >>> write_report(model, X, y, "iris.html")  # doctest: +SKIP
    """
    record = make_record(estimator, X, y, rows=rows, title=title, sizes=sizes, validation=validation)
    Path(path).write_text(make_page(record["title"], record), encoding="utf-8")


def make_record(
    estimator: FittedModel | HasModel,
    X: Any,
    y: Any,
    *,
    rows: int = 1000,
    title: str | None = None,
    sizes: Sequence[int] | None = None,
    validation: Validation | None = None,
) -> dict[str, Any]:
    """Return the data of a page, ready for JSON."""
    rows = check_integer("rows", rows, 0)
    model = fitted_model(estimator).on_cpu()
    tree = _view(model, X, y)
    if not tree.n_rows:
        raise ValueError("X must have at least one row to report on, got none")
    shown = choose_rows(tree.n_rows, rows)
    predicted, quality, truth = _measure(model, tree, X, y)
    return {
        "title": title or _title(model, tree),
        "version": __version__,
        "estimator": model.codec.estimator if model is estimator else type(estimator).__name__,
        "task": tree.task,
        "target": tree.target,
        "outputs": list(tree.outputs),
        "nRows": tree.n_rows,
        "nParameters": model.n_parameters,
        "columns": [plain_column(column) for column in tree.columns],
        "features": [plain_feature(feature) for feature in tree.features],
        "recomputable": tree.recomputable,
        "rows": {
            "numbers": shown.tolist(),
            "columns": plain_columns(X, tree.columns, shown),
            "predicted": _short(predicted[shown]),
            "truth": None if truth is None else _short(truth[shown]),
        },
        "quality": quality,
        "validation": None if validation is None else validation.to_dict(),
        "importances": [float(f"{share:.4g}") for share in importances(model, X, y).tolist()],
        "models": [plain_model(tree), *_smaller(model, X, y, tree, sizes)],
    }


def _view(model: FittedModel, X: Any, y: Any) -> TreeView:
    """Return the view of a model; one whose leaves share terms with most of these, since the page adds them up."""
    tree = view(model, X, y)
    if all(member.corrections is None for member in tree.members):
        return tree
    return view(model, X, y, max_terms=MOST_EFFECTS)


def _title(model: FittedModel, tree: TreeView) -> str:
    if not tree.depth:
        kind = "A model"
    else:
        kind = "tree" if all(len(node.parents) <= 1 for node in tree.nodes) else "graph"
        kind = f"{kind.capitalize()}s" if len(tree.members) > 1 else f"A {kind}"
    if model.target_name:
        return f"{kind} for {tree.target}"
    return f"{kind} of {tree.n_leaves} {'leaf' if tree.n_leaves == 1 else 'leaves'}"


def _measure(
    model: FittedModel, tree: TreeView, X: Any, y: Any
) -> tuple[NDArray[Any], dict[str, Any] | list[dict[str, Any]] | None, NDArray[Any] | None]:
    """Return predictions, their quality and the truth: class indices, (rows,), or values, (rows, targets)."""
    if tree.output.is_classes:
        probabilities = model.predict_proba(X)
        predicted = probabilities.argmax(axis=1)
        if y is None:
            return predicted, None, None
        codes = model.codec.encode(y).numpy()
        return predicted, classification_quality(probabilities, codes), codes
    values = np.asarray(model.predict(X), dtype=np.float64).reshape(tree.n_rows, -1)
    if y is None:
        return values, None, None
    truth = model.codec.truth(y, tree.n_rows)
    quantiles = None
    if tree.output.has_spread:
        shape = (tree.n_rows, len(QUANTILE_LEVELS), -1)  # (rows, quantiles, targets)
        quantiles = model.predict_quantiles(X, QUANTILE_LEVELS).reshape(shape)
    return values, regression_quality(values, truth, quantiles), truth


def _smaller(
    model: FittedModel, X: Any, y: Any, tree: TreeView, sizes: Sequence[int] | None
) -> Iterator[dict[str, Any]]:
    """Yield smaller models with their certificates, the largest first; none if the model cannot be simplified."""
    if sizes is None:
        sizes = usual_sizes(tree.n_leaves) if is_shrinkable(model) else ()
    wanted = sorted({int(size) for size in sizes if size < tree.n_leaves}, reverse=True)
    for smaller in simplification_path(model, X, wanted) if wanted else ():
        certificate = smaller.provenance.certificate
        assert isinstance(certificate, Certificate)
        # Changes of values are in standard deviations of the training target; for one target they get its units.
        unit = float(tree.output.scale[0]) if not tree.output.is_classes and tree.output.n_targets == 1 else 1.0
        is_trivial = tree.output.is_classes and certificate.bound >= 1
        yield plain_model(_view(smaller, X, y)) | {
            "certificate": {
                "measured": certificate.measured * unit,
                "sampled": certificate.sampled * unit,
                "bound": None if is_trivial else certificate.bound * unit,
                "score": None if y is None else _score(smaller, X, y),
            }
        }


def _score(model: FittedModel, X: Any, y: Any) -> float:
    """Return the accuracy of a classifier, or R2 of a regression, as `score` of the estimators does."""
    return float((accuracy_score if model.is_classifier else r2_score)(y, model.predict(X)))


def is_shrinkable(model: FittedModel) -> bool:
    """Return whether a model can be simplified."""
    try:
        check_shrinkable(model.tree)
    except ValueError:
        return False
    return True


def usual_sizes(n_leaves: int) -> list[int]:
    """Return numbers of leaves to simplify to: halves, rounded up, down to two, or one for two leaves.

    Examples
    --------
    >>> usual_sizes(16), usual_sizes(256), usual_sizes(31)
    ([8, 4, 2], [32, 16, 8, 4, 2], [16, 8, 4, 2])
    >>> usual_sizes(3), usual_sizes(2), usual_sizes(1)
    ([2], [1], [])
    """
    if n_leaves <= 2:
        return list(range(1, n_leaves))
    halves = []
    while n_leaves > 2:
        n_leaves = (n_leaves + 1) // 2
        halves.append(n_leaves)
    return [size for size in halves if size <= MOST_LEAVES][-MOST_SIZES:]


def _short(values: NDArray[Any]) -> list[Any]:
    """Return whole numbers as they are, others with seven digits."""
    plain: list[Any] = values.tolist()
    return plain if values.dtype.kind in "iu" else [[float(f"{value:.7g}") for value in row] for row in plain]
