"""Contributions of columns to the prediction for one row, as a waterfall, and importances, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.checks import check_integer
from tartree.explain.arguments import check_index
from tartree.explain.attribution.importances import importances, with_importances
from tartree.explain.attribution.row_explanations import Explanation, RowExplanation, explain_rows
from tartree.explain.plots.scene import single_row
from tartree.explain.plots.style import (
    INK,
    LESS,
    LINE,
    MORE,
    MOST_NAME,
    OTHER,
    QUIET,
    axes_for,
    class_colours,
    fit,
    plain,
    styled,
    text_width,
)
from tartree.explain.text.number_text import format_rounded, mark_missing, percent
from tartree.model import FittedModel, HasModel


@styled
def plot_contributions(
    source: RowExplanation | Explanation | FittedModel | HasModel,
    X: Any = None,
    *,
    row: int = 0,
    background: Any = None,
    output: int | None = None,
    max_columns: int = 10,
    ax: Any = None,
) -> Any:
    """Draw what each column contributes to the prediction for one row, as bars from that of the reference row.

    Parameters
    ----------
    source : RowExplanation, Explanation, fitted estimator or FittedModel
        Explanation to draw, or model to explain.
    X : table, optional
        With a model only.
    row : int, default=0
        Index of the row in X, or in the explanation of several.
    background : table, optional
        Rows whose mean is the reference, with a model only; X by default.
    output : int, optional
        Index of a class or target; the most probable class, or the first target, by default.
    max_columns : int, default=10
        Maximum number of columns with a separate bar; the others share one.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> from tartree.explain import plots
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=2, random_state=0).fit(X, y)
    >>> plots.plot_contributions(model, X, row=3, output=0).get_xlabel()
    'probability of 0'
    """
    explanation = _explained(source, X, row, background)
    if output is None:
        output = int(explanation.prediction.argmax()) if explanation.label is not None else 0
    check_index("output", output, len(explanation.outputs))
    check_integer("max_columns", max_columns, 1)
    parts, labels = _steps(explanation, output, max_columns)
    ends = float(explanation.base[output]) + np.cumsum(parts)
    starts = ends - parts
    ax = axes_for(ax, 7.6, 0.3 * (len(parts) + 2) + 1.15)
    _waterfall(ax, starts, ends, _colours(explanation, output))
    base, prediction = float(explanation.base[output]), float(explanation.prediction[output])
    rows = len(parts) + 2
    labels = ["reference row", *labels, "this row"]
    ax.set_yticks(range(rows), labels)
    ax.set_ylim(rows - 0.4, -0.6)
    for y, value in ((0, base), (rows - 1, prediction)):
        ax.plot([value, value], [y - 0.36, y + 0.36], color=INK, linewidth=3, solid_capstyle="butt")
        ax.annotate(
            format_rounded(value), (value, y), (6, 0), textcoords="offset points", va="center", weight="bold", size=9
        )
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    name = fit(plain(explanation.outputs[output]), 200, 12, "bold")
    if explanation.label is None:
        ax.set_title(f"{name}: {format_rounded(prediction)}")
        ax.set_xlabel(fit(explanation.outputs[output], 200, 10), color=QUIET)
    else:
        ax.set_title(f"{name}: {percent(prediction, 1)}")
        ax.set_xlabel(f"probability of {fit(explanation.outputs[output], 200, 10)}", color=QUIET)
    return ax


def _explained(
    source: RowExplanation | Explanation | FittedModel | HasModel, X: Any, row: int, background: Any
) -> RowExplanation:
    if isinstance(source, RowExplanation | Explanation):
        if X is not None or background is not None:
            raise ValueError("X and background must be left out with an explanation, which has its rows")
        return source if isinstance(source, RowExplanation) else source[row]
    if X is None:
        raise ValueError("X must be given with a model, got X=None")
    return explain_rows(source, single_row(X, row), background=X if background is None else background)[0]


def _steps(explanation: RowExplanation, output: int, max_columns: int) -> tuple[NDArray[np.float64], list[str]]:
    """Return contributions in the order of drawing, with labels: the sum of small ones, then the strongest."""
    values = explanation.contributions[:, output]
    order = np.argsort(-np.abs(values), kind="stable")
    order = order[values[order] != 0]
    shown = order if len(order) <= max_columns + 1 else order[:max_columns]
    rest = order[len(shown) :]
    labels = []
    for k in shown:
        value = explanation.values[explanation.columns[k]]
        text = format_rounded(float(value), 4) if isinstance(value, float | np.floating) else plain(value)
        keep = f" = {fit(mark_missing(text, explanation.columns[k] in explanation.gaps), 90, 9)}"
        labels.append(fit(explanation.columns[k], MOST_NAME, 9, keep=keep))
    parts = values[shown]
    if len(rest):
        parts = np.concatenate([[values[rest].sum()], parts])
        labels.insert(0, f"{len(rest)} other columns")
    return parts, labels


def _colours(explanation: RowExplanation, output: int) -> tuple[str, str]:
    """Return the colours of bars that pull down and that push up: those of the classes, as in other pictures."""
    if explanation.label is None:
        return LESS, MORE
    colours = class_colours(len(explanation.outputs))
    return colours[1 - output] if len(colours) == 2 else OTHER, colours[output]


def _waterfall(ax: Any, starts: NDArray[np.float64], ends: NDArray[np.float64], colours: tuple[str, str]) -> None:
    """Draw bars from start to end, a thin line from each end to the next start, and the change beside each bar."""
    if not len(starts):
        return
    low, high = float(np.minimum(starts, ends).min()), float(np.maximum(starts, ends).max())
    for k, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
        bar = ax.barh(k, end - start, left=start, height=0.62, color=colours[int(end >= start)])
        bar[0].set_gid(f"part {k - 1}")
        ax.plot([start, start], [k - 1 + 0.31, k - 0.31], color=LINE, linewidth=0.8, zorder=0)
        style = {"textcoords": "offset points", "va": "center", "size": 8.5, "color": INK}
        right = max(start, end)
        ax.annotate(_signed(end - start), (right, k), (5, 0), **style)
    ax.plot([ends[-1]] * 2, [len(ends) + 0.31, len(ends) + 0.69], color=LINE, linewidth=0.8, zorder=0)
    span = (high - low) or 1.0
    room = text_width("+0.0000", 9, "bold") / (72 * 4.2)  # of the width of the axes, beside the longest bar
    ax.set_xlim(low - 0.04 * span, high + (0.04 + 1.3 * room) * span)


def _model_importances(source: FittedModel | HasModel) -> NDArray[np.float64]:
    """Return the importances on the training rows; an estimator of another library may have them, too."""
    if isinstance(source, FittedModel):
        shares = with_importances(source).provenance.importances
    else:
        shares = getattr(source, "feature_importances_", None)
    if shares is None:
        raise ValueError(f"X must be given with a model without importances, got {type(source).__name__} and X=None")
    return np.asarray(shares, dtype=np.float64)


def _model_names(source: FittedModel | HasModel) -> Sequence[str] | None:
    """Return the names of the columns, or None."""
    return source.column_names if isinstance(source, FittedModel) else getattr(source, "feature_names_in_", None)


def _signed(value: float) -> str:
    text = format_rounded(abs(value), 2)
    return f"{'-' if value < 0 else '+'}{text}"


@styled
def plot_importances(
    source: FittedModel | HasModel | Mapping[str, float] | Sequence[float] | NDArray[Any],
    X: Any = None,
    y: Any = None,
    *,
    names: Sequence[str] | None = None,
    max_features: int = 20,
    ax: Any = None,
) -> Any:
    """Draw feature importances as bars, the largest first.

    Parameters
    ----------
    source : fitted estimator, FittedModel, mapping of names to numbers, or array of shape (features,)
        For a model, importances are computed on X, or are those on the training rows without X.
    X, y : table and targets, optional
        With a model only.
    names : sequence of str, optional
        Names of the features; those of the model, or x0, x1, ..., by default.
    max_features : int, default=20
        Maximum number of features with a bar; the others are counted.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> from tartree.explain import plots
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=2, random_state=0).fit(X, y)
    >>> plots.plot_importances(model).get_title("left")
    'Feature importances'
    """
    check_integer("max_features", max_features, 1)
    if isinstance(source, Mapping):
        names, values = list(source), np.array(list(source.values()), dtype=np.float64)
    elif isinstance(source, np.ndarray | Sequence):
        values = np.asarray(source, dtype=np.float64)
    else:
        values = _model_importances(source) if X is None else importances(source, X, y)
        names = _model_names(source) if names is None else names
    if values.ndim != 1 or not len(values) or (names is not None and len(names) != len(values)):
        raise ValueError(
            "importances must be one number for each feature, with as many names, got "
            f"shape {values.shape}, {'no' if names is None else len(names)} names"
        )
    labels = [f"x{k}" for k in range(len(values))] if names is None else [str(name) for name in names]
    order = np.argsort(-values, kind="stable")
    shown = order if len(order) <= max_features + 1 else order[:max_features]
    rest = order[len(shown) :]
    lengths = [float(values[k]) for k in shown]
    ax = axes_for(ax, 6.4, 0.26 * len(lengths) + 1.0)
    ax.barh(range(len(lengths)), lengths, height=0.66, color=MORE)
    for k, length in enumerate(lengths):
        style = {"textcoords": "offset points", "va": "center", "size": 8.5, "color": QUIET}
        ax.annotate(f"{length:.3f}", (max(length, 0.0), k), (4, 0), **style)
    ax.set_yticks(range(len(shown)), [fit(labels[k], MOST_NAME, 9) for k in shown])
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(min([0.0, *lengths]), max([0.0, *lengths]) * 1.14 or 1.0)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    others = f"; {len(rest)} other features: {values[rest].sum():.3f} together" if len(rest) else ""
    ax.set_xlabel(f"importance{others}", color=QUIET)
    ax.set_title("Feature importances")
    return ax
