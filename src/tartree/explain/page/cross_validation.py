"""Result of the cross-validation of a model that was then fitted to all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Validation:
    """The cross-validated score of a model, and the models it was chosen from.

    Parameters
    ----------
    score : str
        Name of the score, such as "accuracy".
    mean : float
        Mean over the folds.
    error : float
        Standard error of the mean.
    n_folds : int
        Number of folds.
    words : str
        Sentences that say how the model was chosen.
    columns : sequence of str, optional
        Head of a table of models.
    rows : sequence of sequences of str, optional
        Rows of the table.
    chosen : int, optional
        Row of the chosen model.

    Examples
    --------
    >>> Validation("accuracy", 0.95, 0.01, 5).to_dict()["nFolds"]
    5
    """

    score: str
    mean: float
    error: float
    n_folds: int
    words: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    chosen: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON.

        Returns
        -------
        dict
            Fields under the names of the page's scripts.
        """
        return {
            "score": self.score,
            "mean": self.mean,
            "error": self.error,
            "nFolds": self.n_folds,
            "words": self.words,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "chosen": self.chosen,
        }
