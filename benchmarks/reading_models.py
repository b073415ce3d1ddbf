"""Models under a budget of printed numbers, each with its size chosen by training rows only.

Numbers are counted as `tartree.model.reading_size` counts them: a threshold, a weight and a bias are one number each,
a point of a curve is two. A function has one output of two classes, and one for each of more classes.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import l1_min_c
from sklearn.tree import DecisionTreeClassifier

from tartree import TartClassifier
from tartree.model import FittedModel, data_source
from tartree.model import fit as fit_model
from tartree.nn.families import linear_parameters
from tartree.table import TableEncoder

BUDGET = 45
#: Inner splits: so many folds, and one held-out quarter from `HELD_OUT_ROWS` training rows on.
FOLDS, HELD_OUT, HELD_OUT_ROWS = 3, 0.25, 1000
#: Sizes of the simplified default model, the preferred one first: leaves, features of a decision or leaf.
SIMPLIFIED = ((4, 3), (3, 3), (4, 2), (3, 2), (2, 3), (2, 2), (2, 1), (1, 3), (1, 2), (1, 1))
#: Depth and encoding of numbers of the readable candidates.
READABLE = ((0, "standard"), (1, "standard"), (2, "standard"), (3, "standard"), (0, "curve"))
RULES = (1, 2, 3, 4, 6, 8, 11, 15, 22)
PENALTIES = 1.25 * 1.7 ** np.arange(20)  # multiples of the largest C without weights
BISECTIONS = 3
#: An absolute penalty, by the name that scikit-learn gives it.
L1: dict[str, Any] = {"l1_ratio": 1} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}
TRIALS = 4

Rows = NDArray[Any]


@dataclass(frozen=True)
class Candidate:
    """A model fitted to all training rows, with its size, and how it is fitted to some of them."""

    settings: str
    fitted: Any
    numbers: int
    fit: Callable[[Rows, Rows], Any]


@dataclass(frozen=True)
class Reader:
    """A family of models: its candidates for training rows, a seed and a budget."""

    name: str
    label: str
    candidates: Callable[[Rows, Rows, int, int], Iterator[Candidate]]
    package: str = "sklearn"
    is_limited: bool = True  # by the budget
    draws: bool = False  # a tree whose hard paths are compared with its predictions

    @property
    def missing(self) -> str | None:
        """Message if the package is not installed, else None."""
        if importlib.util.find_spec(self.package) is None:
            return f"{self.name} is skipped: the package {self.package} is not installed; pip install {self.package}"
        return None


def outputs(n_classes: int) -> int:
    """Return how many numbers a constant leaf prints.

    >>> outputs(2), outputs(5)
    (1, 5)
    """
    return 1 if n_classes == 2 else n_classes


def tree_numbers(n_leaves: int, n_outputs: int, n_trees: int = 1) -> int:
    """Return the numbers of trees with thresholds and constant leaves.

    >>> tree_numbers(4, 1), tree_numbers(4, 3), tree_numbers(7, 1, n_trees=2)
    (7, 15, 12)
    """
    return n_leaves - n_trees + n_outputs * n_leaves


def linear_numbers(weights: Rows) -> int:
    """Return the numbers of linear functions: weights other than 0, and a bias each; (functions, features).

    >>> linear_numbers(np.array([[0.0, 2.0, 1.0]]))
    3
    """
    return int(np.count_nonzero(weights)) + len(weights)


def most_terms(n_classes: int, depth: int, budget: int, of_term: int = 1) -> int:
    """Return how many terms a readable tree has room for, below 0 if not even for its constants.

    A decision is a weight and a bias, a leaf has a constant, a term has `of_term` numbers, all for each output.

    >>> most_terms(2, 0, 45), most_terms(2, 2, 45), most_terms(3, 1, 45), most_terms(2, 0, 45, of_term=18)
    (44, 35, 12, 2)
    """
    n_leaves, n_outputs = 2**depth, outputs(n_classes)
    left = budget - 2 * (n_leaves - 1) - n_outputs * n_leaves
    return left // (n_outputs * of_term) if left >= 0 else -1


def simplified_sizes(n_classes: int, n_leaves: int, budget: int) -> list[tuple[int, int]]:
    """Return the sizes of `SIMPLIFIED` that keep the budget, for a model with so many leaves.

    >>> [simplified_sizes(n_classes, 16, 45)[:1] for n_classes in (2, 3, 100)]
    [[(4, 3)], [(3, 3)], []]
    """
    sizes = []
    for most_leaves, terms in SIMPLIFIED:
        leaves = min(most_leaves, n_leaves)
        if (terms + 1) * (leaves - 1 + outputs(n_classes) * leaves) <= budget:
            sizes.append((most_leaves, terms))
    return sizes


def separate_numbers(model: FittedModel) -> int | None:
    """Return the numbers of a model without curves whose leaves are printed one by one, None if it is not linear.

    `ReadingSize` counts what leaves share once, and what differs as a difference, which is longer where they share
    little.
    """
    tree = model.on_cpu().tree
    leaves, decisions = linear_parameters(tree.leaf), linear_parameters(tree.decision)
    if leaves is None or (decisions is None and model.structure.n_decisions):
        return None
    total = 0
    if decisions is not None:
        weights = decisions[0].numpy()
        total += np.count_nonzero(weights) + weights.shape[0] * weights.shape[1]
    shape = (model.n_members, model.structure.n_leaves, len(model.classes), -1)
    for part in leaves:
        numbers = part.numpy().reshape(shape)
        total += np.count_nonzero(numbers[:, :, :1] - numbers[:, :, 1:] if shape[2] == 2 else numbers)
    return int(total)


def fit_best(reader: Reader, X: Rows, y: Rows, seed: int, budget: int = BUDGET) -> Candidate:
    """Fit the candidate within the budget that predicts held-out training rows best; of equal ones the smallest.

    Without a candidate within the budget, it is the most frequent class, which prints no number.
    """
    if len(np.unique(y)) < 2:
        return most_frequent(X, y)
    within = [c for c in reader.candidates(X, y, seed, budget) if c.numbers <= budget or not reader.is_limited]
    if len(within) < 2:
        return within[0] if within else most_frequent(X, y)
    scores = np.zeros(len(within))
    for train, held in inner_splits(y, seed):
        several = len(np.unique(y[train])) > 1
        for k, candidate in enumerate(within):
            fitted = candidate.fit(X[train], y[train]) if several else most_frequent(X[train], y[train]).fitted
            scores[k] += float(np.mean(labels(fitted, X[held]) == y[held]))
    best = max(range(len(within)), key=lambda k: (round(float(scores[k]), 9), -within[k].numbers))
    return within[best]


def most_frequent(X: Rows, y: Rows) -> Candidate:
    def fit(X: Rows, y: Rows) -> Any:
        return DummyClassifier(strategy="most_frequent").fit(X, y)

    return Candidate("the most frequent class", fit(X, y), 0, fit)


def inner_splits(y: Rows, seed: int) -> list[tuple[Rows, Rows]]:
    """Return pairs of rows to fit and held-out rows; classes are spread evenly if they have enough rows."""
    rows, counts = np.zeros(len(y)), np.unique(y, return_counts=True)[1]
    if len(y) >= HELD_OUT_ROWS and counts.min() >= 2:
        return list(StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=seed).split(rows, y))
    kind = StratifiedKFold if counts.max() >= FOLDS else KFold
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        return list(kind(FOLDS, shuffle=True, random_state=seed).split(rows, y))


def labels(fitted: Any, X: Rows) -> Rows:
    return np.asarray(fitted.predict(X)).ravel().astype(np.int64)


def _cart(X: Rows, y: Rows, seed: int, budget: int, *, prints_labels: bool = False) -> Iterator[Candidate]:
    printed = 1 if prints_labels else outputs(len(np.unique(y)))

    def fit(X: Rows, y: Rows, most: int) -> Any:
        return DecisionTreeClassifier(max_leaf_nodes=most, random_state=seed).fit(X, y)

    for most in range(2, budget):
        if tree_numbers(most, printed) > budget:
            return
        tree = fit(X, y, most)
        n_leaves = tree.get_n_leaves()
        yield Candidate(f"{n_leaves} leaves", tree, tree_numbers(n_leaves, printed), partial(fit, most=most))
        if n_leaves < most:
            return


def _figs(X: Rows, y: Rows, seed: int, budget: int) -> Iterator[Candidate]:
    from imodels import FIGSClassifier

    printed = outputs(len(np.unique(y)))

    def fit(X: Rows, y: Rows, most: int) -> Any:
        np.random.seed(seed)  # noqa: NPY002 - its stumps draw from the global generator where splits are equal
        return FIGSClassifier(max_rules=most).fit(X, y)

    for most in RULES:
        if tree_numbers(most + 1, printed) > budget:
            return
        model = fit(X, y, most)
        rules, trees = model.complexity_, len(model.trees_)
        numbers = tree_numbers(rules + trees, printed, trees)
        yield Candidate(f"{rules} rules in {trees} trees", model, numbers, partial(fit, most=most))
        if rules < most:
            return


def _l1(X: Rows, y: Rows, seed: int, budget: int) -> Iterator[Candidate]:
    printed = outputs(len(np.unique(y)))
    if printed > budget:
        return

    def fit(X: Rows, y: Rows, C: float) -> Any:
        model = LogisticRegression(C=C, **L1, solver="saga", tol=1e-3, max_iter=300, random_state=seed)
        return make_pipeline(StandardScaler(), model).fit(X, y)

    def candidate(C: float) -> Candidate:
        model = fit(X, y, C)
        return Candidate(f"C = {C:.4g}", model, linear_numbers(model[-1].coef_), partial(fit, C=C))

    least = float(l1_min_c(StandardScaler().fit_transform(X), y, loss="log"))
    low = high = 0.0
    for C in least * PENALTIES:
        found = candidate(C)
        if found.numbers > budget:
            high = C
            break
        yield found
        low = C
    for _ in range(BISECTIONS if low and high else 0):
        middle = math.sqrt(low * high)
        found = candidate(middle)
        if found.numbers > budget:
            high = middle
        else:
            yield found
            low = middle


def _simplified(X: Rows, y: Rows, seed: int, budget: int) -> Iterator[Candidate]:
    def fit(X: Rows, y: Rows, most_leaves: int, terms: int) -> Any:
        model = TartClassifier(random_state=seed, device="cpu").fit(X, y)
        return model.simplify(X, max_leaves=most_leaves, max_terms=terms)

    model = TartClassifier(random_state=seed, device="cpu").fit(X, y)
    for most_leaves, terms in simplified_sizes(len(np.unique(y)), model.get_n_leaves(), budget):
        small = model.simplify(X, max_leaves=most_leaves, max_terms=terms)
        counts = [small.reading_size_.numbers, separate_numbers(small.model_)]
        numbers = min(count for count in counts if count is not None)
        if numbers <= budget:
            again = partial(fit, most_leaves=most_leaves, terms=terms)
            yield Candidate(f"max_leaves={most_leaves}, max_terms={terms}", small, numbers, again)
            return


def _readable(X: Rows, y: Rows, seed: int, budget: int) -> Iterator[Candidate]:
    def fit(X: Rows, y: Rows) -> Any:
        return TartClassifier(readable=True, random_state=seed, device="cpu").fit(X, y)

    model = fit(X, y)
    size = model.reading_size_
    yield Candidate(f"{size.leaves} leaves", model, size.numbers, fit)


def _readable_within(X: Rows, y: Rows, seed: int, budget: int) -> Iterator[Candidate]:
    n_classes = len(np.unique(y))

    def fit(X: Rows, y: Rows, depth: int, numeric: Any, terms: int) -> Any:
        return fit_readable(X, y, seed, depth, numeric, terms)

    for depth, numeric in READABLE:
        of_term = 1 if numeric == "standard" else curve_numbers(X)
        terms = most_terms(n_classes, depth, budget, of_term)
        if terms < (numeric == "curve"):  # without a term, curves are what constants are
            continue
        for _ in range(TRIALS):
            model = fit(X, y, depth, numeric, terms)
            size = model.reading_size_
            if size.numbers is None:
                break
            if size.numbers <= budget:
                settings = f"depth={depth}, numeric={numeric!r}, max_terms={terms}"
                again = partial(fit, depth=depth, numeric=numeric, terms=terms)
                yield Candidate(settings, model, size.numbers, again)
                break
            terms -= math.ceil((size.numbers - budget) / (outputs(n_classes) * of_term))
            if terms < 0:
                break


def fit_readable(X: Rows, y: Rows, seed: int, depth: int, numeric: Any, terms: int, **settings: Any) -> TartClassifier:
    """Fit a readable tree with an encoding of numbers; `readable=True` takes "standard" for unset and sets curves."""
    model = TartClassifier(readable=True, depth=depth, max_terms=terms, random_state=seed, device="cpu", **settings)
    spec = replace(model.spec(), numeric=numeric)
    return model.with_model(fit_model(spec, data_source(spec, X, y)))


def curve_numbers(X: Rows) -> int:
    """Return the numbers of the longest curve of a column."""
    features = TableEncoder(numeric="curve").fit(X).features_
    bins = np.bincount([feature.column for feature in features if feature.bin is not None], minlength=1)
    return 2 * (int(bins.max()) + 1) if bins.max() else 1


READERS = {
    reader.name: reader
    for reader in [
        Reader("readable-45", f"`TartClassifier(readable=True)`, {BUDGET} numbers", _readable_within, draws=True),
        Reader("CART", "CART", _cart),
        Reader("CART-labels", "CART, labels only", partial(_cart, prints_labels=True)),
        Reader("FIGS", "FIGS", _figs, package="imodels"),
        Reader("L1", "L1 logistic regression", _l1),
        Reader("simplified", "default, simplified", _simplified),
        Reader("readable", "`TartClassifier(readable=True)`, no budget", _readable, is_limited=False, draws=True),
    ]
}
