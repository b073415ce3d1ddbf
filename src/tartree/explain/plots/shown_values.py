"""Values of the rows that a panel shows, in original units: numbers, their range, and shares of levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tartree.explain.text.column_effects import ANOTHER, MISSING, level_text
from tartree.explain.tree_view.views import TreeView

FloatArray = NDArray[np.float64]
#: Share of the rows that the x axis of a panel shows.
SHOWN_ROWS = 0.99
#: Share of the rows that codes such as 999999 have at most, and how far they are from others, in widths of those.
CODE_SHARE, CODE_DISTANCE = 0.1, 10.0


def values_of(
    tree: TreeView, column: int, rows: FloatArray | None
) -> tuple[FloatArray | None, NDArray[np.bool_] | None]:
    """Return the numbers of a column that are not missing, and which rows have none."""
    if rows is None:
        return None, None
    features = tree.columns[column].features
    kinds = {tree.features[k].kind: k for k in reversed(features)}
    missing = rows[:, kinds["missing"]] > 0.5 if "missing" in kinds else np.zeros(len(rows), dtype=np.bool_)
    if "value" not in kinds:
        return None, missing
    values = _decode(tree, kinds["value"], rows[:, kinds["value"]])[~missing]
    return np.rint(values) if tree.columns[column].whole else values, missing


def _decode(tree: TreeView, feature: int, encoded: FloatArray) -> FloatArray:
    scaled = tree.features[feature]
    if scaled.knots:
        return np.asarray(np.interp(encoded, scaled.heights, scaled.knots))
    if scaled.ends is not None:
        encoded = np.clip(encoded, *scaled.ends)  # rows beyond are counted at the ends
    return scaled.center + scaled.scale * encoded


def shown_range(tree: TreeView, column: int, values: FloatArray | None) -> tuple[float, float]:
    """Return the values that an x axis shows: those of most rows."""
    view_column = tree.columns[column]
    low, high = float(view_column.low or 0.0), float(1.0 if view_column.high is None else view_column.high)
    if values is not None and len(values):
        tail = (1 - SHOWN_ROWS) / 2
        values = _without_codes(values) if tree.features[view_column.features[0]].knots else values
        low, high = (float(v) for v in np.quantile(values, [tail, 1 - tail], method="nearest"))
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _without_codes(values: FloatArray) -> FloatArray:
    """Return values without the few that are far from all others, such as 999999 for "unknown"."""
    ordered = np.sort(values)
    few = int(CODE_SHARE * len(ordered))
    first, last = ordered[few], ordered[len(ordered) - 1 - few]
    reach = CODE_DISTANCE * max(last - first, 1e-300)
    return np.asarray(ordered[(ordered >= first - reach) & (ordered <= last + reach)], dtype=np.float64)


def level_shares(tree: TreeView, column: int, rows: FloatArray | None, levels: list[str]) -> FloatArray | None:
    if rows is None:
        return None
    shares: dict[str, float] = {}
    rest = 1.0
    for k in tree.columns[column].features:
        feature = tree.features[k]
        name = {"other": ANOTHER, "missing": MISSING}.get(feature.kind, level_text(feature.level))
        shares[name] = float(np.mean(rows[:, k] > 0.5))
        rest -= shares[name]
    if tree.columns[column].kind == "boolean":
        shares["False"] = rest
    return np.array([shares.get(level, 0.0) for level in levels])
