"""`TableEncoder`: a mixed table as a float32 matrix, with names and units to read it back."""

from __future__ import annotations

import difflib
import math
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tartree.table.column_kinds import LearntColumn, check_kinds, kinds_in_order, learn_column, learn_statistics
from tartree.table.columns import COLUMNS
from tartree.table.columns.column import Column, Fitting
from tartree.table.columns.constant import Constant
from tartree.table.columns.numeric import Numeric
from tartree.table.expansion import Expansion
from tartree.table.feature import Feature
from tartree.table.number_matrix import MatrixEncoding
from tartree.table.raw_table import Table, read_table, string_names
from tartree.table.row_error import among
from tartree.table.saved_fields import Arrays, Fields, refuse
from tartree.table.statistics import TableStatistics
from tartree.table.table_summary import TableSummary, describe_column
from tartree.table.texts.text_forms import TextForm

#: Version of the state. 1 had no `extrapolation`: numbers beyond the range seen had no limit; 2 had no curves; 3 read
#: no numbers and dates from text, and had neither `columns` nor shares of missing values.
FORMAT = 4

#: Columns that a warning names.
MOST_DOUBTS = 3

NUMERIC = ("standard", "curve", "quantile", "plain")
PARAMETERS = ("numeric", "n_quantiles", "n_bins", "max_levels", "min_count", "extrapolation", "columns")


class ColumnWarning(UserWarning):
    """A column was left out, or read in a way that its values alone do not tell."""


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode a mixed table as a float32 matrix without missing values, and read it back in original names and units.

    It takes pandas, polars and Arrow tables and all others that narwhals knows, arrays, sparse matrices and lists of
    rows, and decides column by column:

    - Numbers are standardised, or mapped to a normal distribution. Missing values become the median, and where `fit`
      saw some a feature marks them. A standardised value is kept within a million standard deviations of the mean.
    - Dates, datetimes, durations and times of day are numbers in seconds; dates and datetimes count from 1970, in UTC.
    - Booleans are one feature, 1 where true. Missing values are a feature where `fit` saw some, and the more frequent
      value where it saw none.
    - Text is read as numbers or dates if all of it can be: numbers with a currency, a percent sign, separators of
      thousands, a decimal point or comma, or in brackets if negative; dates in ISO form, like 16/01/2020, 01/16/2020 or
      May 07, 2020, with or without a time. Decimal mark and order of day and month are decided by all texts of a
      column; where they do not tell, a comma before three digits separates thousands and the day is first, with a
      warning. Texts of digits alone are levels, and so are categories of pandas and polars.
    - Other strings and categories have one feature per level. Rare levels share one feature, missing values have one
      where `fit` saw some. A level that `fit` did not see, or a missing value where it saw none, counts as rare; where
      nothing was rare it is none of the levels, and all features are 0.
    - A column with one value or without any, and a column of texts that are all rare, has no feature. Identifiers have
      none either, with a warning: columns whose texts differ in almost every row, and whole numbers that differ in
      every row of a column with a name such as "id" or "customer_id".

    A sparse matrix is read column by column, and is taken if it fits into 4 GiB once dense.
    Infinities, complex numbers, nested columns and repeated column names are errors that name the column.

    Parameters
    ----------
    numeric : {"standard", "curve", "quantile", "plain"}, default="standard"
        How numbers are scaled: to mean 0 and standard deviation 1, or by a rising, piecewise linear map to a standard
        normal distribution. The map goes on linearly for one more range on either side of the values seen, and is
        constant beyond. A column always has this map where a few numbers lie ten times further out than all others are
        apart, such as 999999 for "unknown": a scale for both would squeeze all others into one point.
        "curve" standardises, and adds a feature for each bin between quantiles, so that a linear function of the
        features is a piecewise linear curve of each number.
        "plain" takes numbers as they are and gives every column of numbers a feature, also where all
        values are equal: for images, whose pixels have a position. They are kept within a million; dates, durations
        and times of day, in seconds far beyond that, are standardised.
    n_quantiles : int, default=256
        The most knots of that map.
    n_bins : int, default=8
        The most bins of a number with ``numeric="curve"``; of few rows, so many that each has about 20 rows. Where
        there are not more different values than points, each value has its point.
    max_levels : int, default=32
        The most levels of a column that have a feature each, the most frequent first.
    min_count : int, default=2
        Levels seen less often are rare.
    extrapolation : float or None, default=0.1
        Standardised numbers beyond the range seen in `fit` are limited smoothly: they are read as at most that share
        of the range further out. None: as they are, however far.

    columns : dict, optional
        What some columns are, by name (by position in a table without names), where their values do not tell:
        "number", "date", "category" or "ignore"; "number-decimal-comma", "number-decimal-point", "date-day-first" and
        "date-month-first" also tell how texts are read.

    Attributes
    ----------
    columns_ : list of Numeric, Boolean, Category or Constant
        What was learnt about each column.
    features_ : list of Feature
        What each output feature says: source column, kind, level, unit, scaling, bin.
    expansion_ : Expansion
        From the values of `encode_values` to the features.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if all of them are strings.

    Examples
    --------
    >>> from tartree.table import TableEncoder
    >>> rows = [[35, "red"], [41, "blue"], [None, "red"], [52, "blue"]]
    >>> encoder = TableEncoder().fit(rows)
    >>> list(encoder.get_feature_names_out())
    ['x0', 'x0=(missing)', 'x1=blue', 'x1=red']
    >>> encoder.transform([[41, "green"]])[0, 1:].tolist()
    [0.0, 0.0, 0.0]
    >>> round(encoder.inverse_value(0, 0.0), 2)
    42.67
    """

    def __init__(
        self,
        *,
        numeric: str = "standard",
        n_quantiles: int = 256,
        n_bins: int = 8,
        max_levels: int = 32,
        min_count: int = 2,
        extrapolation: float | None = 0.1,
        columns: Mapping[Any, str] | None = None,
    ) -> None:
        self.numeric = numeric
        self.n_quantiles = n_quantiles
        self.n_bins = n_bins
        self.max_levels = max_levels
        self.min_count = min_count
        self.extrapolation = extrapolation
        self.columns = columns

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn how each column is encoded.

        Parameters
        ----------
        X : table of shape (rows, columns)
        y : object
            Ignored.
        sample_weight : array-like of shape (rows,), optional
            Rows without weight are not read. Means, spreads, medians and quantiles of numbers are weighted; levels are
            counted by rows.

        Returns
        -------
        TableEncoder
            Itself.
        """
        fitting = self._checked_fitting()
        table = read_table(X)
        for count, what in ((table.n_rows, "sample"), (table.n_columns, "feature")):
            if not count:
                raise ValueError(
                    f"Found array with 0 {what}(s) (shape=({table.n_rows}, {table.n_columns})) "
                    "while a minimum of 1 is required."
                )
        names = string_names(table)
        weights, rows = None, None
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
            if weights.shape != (table.n_rows,) or not np.isfinite(weights).all():
                raise ValueError(f"sample_weight must be {table.n_rows} finite numbers, got shape {weights.shape}")
            if not (weights > 0).any():
                raise ValueError("sample_weight must not be zero for every row, got no positive weight")
            rows = np.flatnonzero(weights > 0)
            weights = weights[rows]
        learnt = []
        kinds = kinds_in_order(self.columns, names, table.n_columns)
        for index in range(table.n_columns):
            raw = table.read(index)
            with among(rows):
                raw = raw if rows is None or len(rows) == table.n_rows else raw.take(rows)
                learnt.append(learn_column(raw, names[index] if names else "", kinds[index], fitting, weights))
        self._set_fitted(learnt, names)
        self._warn_of_doubts()
        return self

    def fit_statistics(self, statistics: TableStatistics) -> Self:
        """Learn from the statistics of a table that was read in chunks, which need not fit into memory together.

        The result is that of `fit` on all rows, but for the rounding of means and standard deviations, and for
        medians and quantiles, whose ranks are within 0.5 %.

        Parameters
        ----------
        statistics : TableStatistics

        Returns
        -------
        TableEncoder
            Itself.

        Examples
        --------
        >>> from tartree.table import TableEncoder, TableStatistics
        >>> statistics = TableStatistics()
        >>> for chunk in ([[1, "a"], [2, "b"]], [[3, "a"], [None, "b"]]):
        ...     statistics.update(chunk)
        >>> list(TableEncoder().fit_statistics(statistics).get_feature_names_out())
        ['x0', 'x0=(missing)', 'x1=a', 'x1=b']
        """
        fitting = self._checked_fitting()
        if not statistics.n_rows:
            raise ValueError("statistics must be those of at least one row with weight, got none")
        kinds = kinds_in_order(self.columns, statistics.names, len(statistics.columns))
        self._set_fitted(learn_statistics(statistics, kinds, fitting), statistics.names)
        self._warn_of_doubts()
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Encode a table with the columns of `fit`.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        ndarray of float32, (rows, features)
        """
        values = self.encode_values(X)
        return self.expansion_(values)

    def encode_values(self, X: Any) -> NDArray[np.float32]:
        """Encode a table without the bins of curves, which `expansion_` adds.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        ndarray of float32, (rows, values)
            The features that are not bins.
        """
        check_is_fitted(self, "columns_")
        table = read_table(X)
        self._check_columns(table)
        encoded = np.zeros((table.n_rows, self.expansion_.n_values), dtype=np.float32)
        is_encoded = table.matrix is not None and self._matrix.encode(table.matrix, encoded)
        if table.n_rows and not is_encoded:
            slices = self._slices(self._value_features)
            for index, (column, features) in enumerate(zip(self.columns_, slices, strict=True)):
                if not isinstance(column, Constant):  # what it holds is not read
                    column.encode(table.read(index), encoded[:, features])
        return encoded

    def inverse_transform(self, X: ArrayLike) -> dict[str, NDArray[Any]]:
        """Return encoded rows in original units.

        Parameters
        ----------
        X : array-like of shape (rows, features)

        Returns
        -------
        dict of ndarray
            Columns by name. Numbers are float64 with NaN for missing values; dates and times are ISO text, durations
            seconds; levels are objects, with None for missing values and "(other)" for rare and unseen levels. Imputed
            values that have no feature are what they were filled with.
        """
        check_is_fitted(self, "columns_")
        encoded = np.asarray(X, dtype=np.float64)  # (rows, features)
        if encoded.ndim != 2 or encoded.shape[1] != len(self.features_):
            raise ValueError(
                f"X must have the shape (rows, {len(self.features_)}), as transform returns it, got {encoded.shape}"
            )
        columns = zip(self._column_names(), self.columns_, self._slices(self.features_), strict=True)
        return {name: column.decode(encoded[:, features]) for name, column, features in columns}

    def inverse_value(self, feature: int, encoded: float) -> float | str | bool:
        """Return one encoded value of an output feature, such as a threshold, in original units.

        Parameters
        ----------
        feature : int
            Index of the feature.
        encoded : float

        Returns
        -------
        float, str or bool
            A number for numbers and durations, ISO text for dates and times, a bool for a level, a rare level or a
            missing value.
        """
        check_is_fitted(self, "features_")
        if not -len(self.features_) <= feature < len(self.features_):
            raise ValueError(f"feature must be below {len(self.features_)}, got {feature}; see features_")
        return self.features_[feature].original(encoded)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return names of the output features: "age", "age=(missing)", "colour=red", "colour=(other)".

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns, where the table had none.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self, "features_")
        features = self.features_
        if input_features is not None:
            input_names = np.asarray(input_features, dtype=object)
            if hasattr(self, "feature_names_in_") and not np.array_equal(self.feature_names_in_, input_names):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(input_names) != self.n_features_in_:
                raise ValueError(
                    f"input_features should have length equal to number of features ({self.n_features_in_}), "
                    f"got {len(input_names)}"
                )
            features = _describe(self.columns_, [str(name) for name in input_names])
        taken: Counter[str] = Counter()
        names = np.empty(len(features), dtype=object)
        for index, feature in enumerate(features):
            name = feature.label
            while name in taken:  # a column may be called like a level of another one
                taken[feature.label] += 1
                name = f"{feature.label} ({taken[feature.label]})"
            taken[name] += 1
            names[index] = name
        return names

    def record_forms(self, forms: Mapping[str, tuple[TextForm | None, str | None]]) -> None:
        """Record how the texts of columns were read before `fit`, so that `transform` reads such texts alike.

        Parameters
        ----------
        forms : dict
            Form and note of columns, by name.
        """
        check_is_fitted(self, "columns_")
        learnt = []
        for name, entry in zip(self._column_names(), self._learnt, strict=True):
            form, note = forms.get(name, (None, None))
            column = replace(entry.column, form=form) if form and isinstance(entry.column, Numeric) else entry.column
            learnt.append(replace(entry, column=column, note=note or entry.note))
        names = self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
        self._set_fitted(learnt, names)

    def summary(self) -> TableSummary:
        """Return what each column was taken for: kind, form of its texts, range or levels, share of missing values.

        Returns
        -------
        TableSummary
            A tuple with a `ColumnDescription` for each column, printed as a table.
        """
        check_is_fitted(self, "columns_")
        used = {feature.column for feature in self.features_}
        pairs = enumerate(zip(self._column_names(), self._learnt, strict=True))
        return TableSummary(describe_column(name, learnt, is_used=index in used) for index, (name, learnt) in pairs)

    def get_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return parameters and all that was learnt; see `from_state`.

        Returns
        -------
        state : dict
            JSON can hold it.
        arrays : dict of ndarray
        """
        check_is_fitted(self, "columns_")
        arrays: Arrays = {}
        columns = [column.to_state(index, arrays) for index, column in enumerate(self.columns_)]
        names = self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
        parameters = {name: getattr(self, name) for name in PARAMETERS}
        parameters = {name: _plain_number(value) for name, value in parameters.items()}
        facts = [{"missing": learnt.missing, "note": learnt.note} for learnt in self._learnt]
        state = {"format": FORMAT, "parameters": parameters, "feature_names_in": names}
        return {**state, "columns": columns, "facts": facts}, arrays

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make a fitted encoder from what `get_state` returned.

        Parameters
        ----------
        state : dict
        arrays : dict of ndarray

        Returns
        -------
        TableEncoder

        Raises
        ------
        ValueError
            If it is not such a state.
        """
        names = {"format", "parameters", "feature_names_in", "columns"}
        has_facts = isinstance(state, Mapping) and (state.get("format") == FORMAT or "facts" in state)
        fields = Fields(state, names | {"facts"} if has_facts else names)
        if not isinstance(arrays, Mapping):
            refuse("a dict of arrays", arrays)
        if type(state["format"]) is not int or not 1 <= state["format"] <= FORMAT:
            refuse(f"a format from 1 to {FORMAT}", state["format"])
        parameters = fields.state["parameters"]
        if isinstance(parameters, Mapping) and state["format"] < FORMAT:
            added = {"extrapolation": None} if state["format"] == 1 else {}
            parameters = {"n_bins": 8, "columns": None, **added, **parameters}
        encoder = cls(**_read_parameters(Fields(parameters, set(PARAMETERS)).state))
        fitting = encoder._checked_fitting()
        saved = state["columns"]
        if not isinstance(saved, list) or not saved:
            refuse("a list of columns", saved)
        columns = [_read_column(column, index, arrays, fitting) for index, column in enumerate(saved)]
        used: Arrays = {}
        for index, column in enumerate(columns):
            column.to_state(index, used)
        if set(arrays) != set(used):
            refuse(f"the arrays {sorted(used)}", sorted(map(str, arrays)))
        names = state["feature_names_in"]
        if names is not None:
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                refuse("column names that are strings", names)
            if len(names) != len(columns) or len(set(names)) < len(names):
                refuse(f"{len(columns)} different column names", names)
        facts = _read_facts(state["facts"], len(columns)) if has_facts else [(None, None)] * len(columns)
        learnt = [LearntColumn(column, *fact) for column, fact in zip(columns, facts, strict=True)]
        encoder._set_fitted(learnt, names)
        return encoder

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _checked_fitting(self) -> Fitting:
        """Return what columns are fitted with, or raise for a wrong parameter."""
        if not isinstance(self.numeric, str) or self.numeric not in NUMERIC:
            raise ValueError(f"numeric must be one of {', '.join(map(repr, NUMERIC))}, got {self.numeric!r}")
        for name, least in (("n_quantiles", 2), ("n_bins", 2), ("max_levels", 1), ("min_count", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        share: Any = self.extrapolation
        if share is not None and (
            isinstance(share, bool) or not isinstance(share, Real) or not 0 <= float(share) < math.inf
        ):
            raise ValueError(f"extrapolation must be a number of at least 0 or None, got {share!r}")
        check_kinds(self.columns)
        return Fitting(self.numeric, self.n_quantiles, self.max_levels, self.min_count, self.extrapolation, self.n_bins)

    def _set_fitted(self, learnt: list[LearntColumn], names: list[str] | None) -> None:
        columns = [entry.column for entry in learnt]
        self._learnt = learnt
        self.columns_ = columns
        self.n_features_in_ = len(columns)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.features_ = _describe(columns, self._column_names())
        self.expansion_ = Expansion(self.features_)
        self._value_features = [feature for feature in self.features_ if feature.bin is None]
        self._matrix = MatrixEncoding(columns)

    def doubts(self) -> dict[str, str]:
        """Return what was decided by a rule in this `fit`, for columns by name.

        Returns
        -------
        dict of str
        """
        pairs = zip(self._column_names(), self._learnt, strict=True)
        return {name: str(learnt.note) for name, learnt in pairs if learnt.is_doubtful}

    def _warn_of_doubts(self) -> None:
        """Warn of choices that were made by a rule."""
        doubts = [f"column {name!r}: {note}" for name, note in self.doubts().items()]
        if doubts:
            more = f", and {len(doubts) - MOST_DOUBTS} more" if len(doubts) > MOST_DOUBTS else ""
            what = "; ".join(doubts[:MOST_DOUBTS])
            message = f"{what}{more}; columns= says it otherwise, and summary() lists all columns"
            warnings.warn(message, ColumnWarning, stacklevel=3)

    def _column_names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{index}" for index in range(self.n_features_in_)]

    def _slices(self, features: list[Feature]) -> list[slice]:
        """Return the features of each column."""
        counts = Counter(feature.column for feature in features)
        ends = np.cumsum([counts[index] for index in range(self.n_features_in_)]).tolist()
        return [slice(end - counts[index], end) for index, end in enumerate(ends)]

    def _check_columns(self, table: Table) -> None:
        """Raise scikit-learn's errors unless names and number of columns are those of fit."""
        fitted = self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
        names = string_names(table)
        encoder = type(self).__name__
        if fitted is None and names is not None:
            warnings.warn(f"X has feature names, but {encoder} was fitted without feature names", stacklevel=3)
        elif fitted is not None and names is None:
            warnings.warn(
                f"X does not have valid feature names, but {encoder} was fitted with feature names", stacklevel=3
            )
        elif fitted != names and fitted is not None and names is not None:
            raise ValueError(_mismatch(fitted, names))
        if table.n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {table.n_columns} features, but {encoder} is expecting {self.n_features_in_} features as input."
            )


def _plain_number(value: Any) -> Any:
    """Return a parameter as JSON can hold it."""
    if isinstance(value, Mapping):  # its keys may be numbers
        return [[_plain_number(key), kind] for key, kind in value.items()]
    return int(value) if isinstance(value, Integral) else float(value) if isinstance(value, Real) else value


def _read_parameters(saved: Mapping[str, Any]) -> dict[str, Any]:
    kinds = saved["columns"]
    if kinds is None:
        return dict(saved)
    if not isinstance(kinds, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in kinds):
        refuse("pairs of a column and its kind", kinds)
    if not all(isinstance(key, str | int) for key, _ in kinds):
        refuse("names or positions of columns", kinds)
    return {**saved, "columns": dict(map(tuple, kinds))}


def _read_facts(saved: Any, n_columns: int) -> list[tuple[float | None, str | None]]:
    if not isinstance(saved, list) or len(saved) != n_columns:
        refuse("facts about every column", saved)
    facts = []
    for fact in saved:
        fact = Fields(fact, {"missing", "note"}).state
        missing, note = fact["missing"], fact["note"]
        is_share = missing is None or (type(missing) in (int, float) and 0 <= missing <= 1)
        if not is_share or not (note is None or isinstance(note, str)):
            refuse("a share of missing values and a note", fact)
        facts.append((missing, note))
    return facts


def _read_column(state: Any, index: int, arrays: Mapping[str, Any], fitting: Fitting) -> Column:
    kind = state.get("kind") if isinstance(state, Mapping) else None
    if not isinstance(kind, str) or kind not in COLUMNS:
        refuse("a kind in every column", state)
    return COLUMNS[kind].from_state(state, index, arrays, fitting)


def _describe(columns: list[Column], names: list[str]) -> list[Feature]:
    pairs = zip(columns, names, strict=True)
    return [feature for index, (column, name) in enumerate(pairs) for feature in column.features(index, name)]


def _mismatch(fitted: list[str], names: list[str]) -> str:
    message = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    if unseen:
        message += "Feature names unseen at fit time:\n" + _listed(unseen)
    if missing:
        message += "Feature names seen at fit time, yet now missing:\n" + _listed(missing)
    if not unseen and not missing:
        return (
            message
            + "Feature names must be in the same order as they were in fit.\nSelect them: X[encoder.feature_names_in_]"
        )
    near = {name: difflib.get_close_matches(name, unseen, n=1, cutoff=0.5) for name in missing[:5]}
    hints = [f"{name!r} may be {matches[0]!r}" for name, matches in near.items() if matches]
    return message + (f"Rename what was meant: {', '.join(hints)}" if hints else "Add or drop these columns")


def _listed(names: list[str]) -> str:
    return "".join(f"- {name}\n" for name in names[:5]) + ("- ...\n" if len(names) > 5 else "")
