"""What held-out rows said about a model before it was fitted to all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Validation:
    """The score of a model in a cross-validation, and the models it was chosen from, for the page of one that was then
    fitted to all rows.

    Parameters
    ----------
    score : str
        Its name, such as "accuracy".
    mean, error : float
        Over the folds; the standard error of the mean.
    n_folds : int
    words : str
        How the model was chosen.
    columns : sequence of str, optional
        The head of a table of models.
    rows : sequence of sequences of str, optional
        What stands in the table.
    chosen : int, optional
        The row of the chosen one.
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
        """Plain data, ready for JSON."""
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
