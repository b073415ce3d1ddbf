"""Methods of estimators that call the room `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tartree import explain as explanations
from tartree.explain.attribution.importances import with_importances
from tartree.model import FittedModel

if TYPE_CHECKING:
    from tartree.explain.page import Validation


class ExplanationMethods:
    """Explanations, simpler models, reports and importances of an estimator that holds a fitted model."""

    @property
    def model_(self) -> FittedModel:
        """The fitted model."""
        raise NotImplementedError

    def with_model(self, model: FittedModel) -> Self:
        """Return a copy of the estimator that holds another model."""
        raise NotImplementedError

    def adopt(self, model: FittedModel) -> Self:
        """Hold another model."""
        raise NotImplementedError

    def explain(
        self, X: Any, *, background: Any = None, share: float = 0.9, max_paths: int = 5, max_terms: int = 12
    ) -> explanations.Explanation:
        """Explain rows: paths, conditions, arrivals, contributions; see `tartree.explain.explain_rows`.

        Parameters
        ----------
        X : table of shape (rows, columns)
        background : table, optional
            Rows whose mean the rows are compared with. By default a row of mean numbers and most frequent levels.
        share : float, default=0.9
            Paths of a row are listed until they have this share of its arrival.
        max_paths : int, default=5
            Maximum number of paths of a row and member.
        max_terms : int, default=12
            Maximum number of terms of a step.

        Returns
        -------
        tartree.explain.Explanation
        """
        return explanations.explain_rows(
            self, X, background=background, share=share, max_paths=max_paths, max_terms=max_terms
        )

    def simplify(
        self,
        X: Any,
        tolerance: float | None = None,
        max_leaves: int | None = None,
        max_terms: int | None = None,
        *,
        max_boxes: int = 512,
    ) -> Self:
        """Return a smaller model that predicts nearly the same; see `tartree.explain.simplify`.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Rows where the predictions must stay the same, such as those of training.
        tolerance : float, optional
            Largest change of a probability, or of a value in standard deviations of the training target, on these
            rows; 0.01 if none of the three limits is given.
        max_leaves : int, optional
            Maximum number of leaves of a member.
        max_terms : int, optional
            Maximum number of features of a decision or leaf.
        max_boxes : int, default=512
            Maximum number of parts of the data's box that the bound of the certificate is computed on.

        Returns
        -------
        estimator
            Its ``certificate_`` says how much predictions change.
        """
        return explanations.simplify(
            self, X, tolerance=tolerance, max_leaves=max_leaves, max_terms=max_terms, max_boxes=max_boxes
        )

    def harden(self, X: Any) -> Self:
        """Return the model in which every row follows one path; see `tartree.explain.harden`.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Rows to compare the two models on.

        Returns
        -------
        estimator
            Its ``hardening_`` says how the two compare.
        """
        return explanations.harden(self, X)

    def report(
        self,
        X: Any,
        y: Any,
        path: str | PathLike[str],
        *,
        rows: int = 1000,
        title: str | None = None,
        sizes: Sequence[int] | None = None,
        validation: Validation | None = None,
    ) -> None:
        """Write an HTML page about the model on these rows: one file, which works offline.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Rows to measure the model on.
        y : array of shape (rows,) or (rows, targets), or None
            True labels or values of the rows.
        path : path of the file
        rows : int, default=1000
            Number of rows that the page holds.
        title : str, optional
        sizes : sequence of int, optional
            Numbers of leaves of the smaller models that a slider offers; an empty sequence for no slider.
        validation : tartree.explain.page.Validation, optional
            Result of a cross-validation, if the model was fitted to these rows; it is shown first.
        """
        from tartree.explain.page import write_report

        write_report(self, X, y, path, rows=rows, title=title, sizes=sizes, validation=validation)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of each column, (columns,): its share of the impurity removed on (a sample of) the training rows.

        `tartree.explain.importances` computes those on other rows.
        """
        check_is_fitted(self, "tree_")
        self._compute_importances()
        importances = self.model_.provenance.importances
        if importances is None:
            raise AttributeError(
                "feature_importances_ is not known of a table read from disk: call explain.importances(model, X, y)"
            )
        return importances

    def _compute_importances(self) -> None:
        """Compute the importances on the training rows once, if the estimator is fitted."""
        model = getattr(self, "model_", None)
        if model is not None:
            self.adopt(with_importances(model))
