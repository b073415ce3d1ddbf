"""Methods of estimators that call the room `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tartree.model import FittedModel


class ExplanationMethods:
    """Explanations, simpler models, reports and importances."""

    _model: FittedModel

    def explain(
        self, X: Any, *, background: Any = None, share: float = 0.9, max_paths: int = 5, max_terms: int = 12
    ) -> Any:
        """Explain rows: paths, conditions, arrivals, contributions; see `tartree.explain.explain_rows`.

        Parameters
        ----------
        X : table of shape (rows, columns)
        background : table, optional
            Rows whose mean the rows are compared with; by default a row of mean numbers and most frequent levels.
        share : float, default=0.9
            Paths of a row are listed until they have this share of its arrival.
        max_paths, max_terms : int
            The most paths of a row and member, and terms of a step.
        """
        from tartree.explain import explain_rows

        return explain_rows(self, X, background=background, share=share, max_paths=max_paths, max_terms=max_terms)

    def simplify(
        self,
        X: Any,
        tolerance: float | None = None,
        max_leaves: int | None = None,
        max_terms: int | None = None,
        *,
        max_boxes: int = 512,
    ) -> Self:
        """A smaller model that predicts nearly the same, with its `certificate_`; see `tartree.explain.simplify`.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Rows that say where the model must stay the same, such as those of training.
        tolerance : float, optional
            The largest change of a probability, or of a value in standard deviations of the training target, on these
            rows; 0.01 where none of the three is given.
        max_leaves, max_terms : int, optional
            The most leaves of a member, and features that a decision or leaf may look at.
        max_boxes : int, default=512
            How many parts of the data's box the bound of the certificate may look at.
        """
        from tartree.explain import simplify

        smaller: Self = simplify(
            self, X, tolerance=tolerance, max_leaves=max_leaves, max_terms=max_terms, max_boxes=max_boxes
        )
        return smaller

    def harden(self, X: Any) -> Self:
        """The single-path model, with how it compares on these rows in `hardening_`; see `tartree.explain.harden`."""
        from tartree.explain import harden

        harder: Self = harden(self, X)
        return harder

    def report(
        self,
        X: Any,
        y: Any,
        path: Any,
        *,
        rows: int = 1000,
        title: str | None = None,
        sizes: Sequence[int] | None = None,
        validation: Any = None,
    ) -> None:
        """Write an HTML page about the model on these rows: one file, which needs no network.

        Parameters
        ----------
        X, y : table and target
            Rows to measure the model on; `y` may be None.
        path : path of the file
        rows : int, default=1000
            How many rows the page holds, to be looked at one by one.
        title : str, optional
        sizes : sequence of int, optional
            Numbers of leaves of the smaller models that a slider offers; none with an empty one.
        validation : tartree.explain.page.Validation, optional
            What a cross-validation said, where these are the rows that the model learnt from; it then stands first.
        """
        from tartree.explain.page import write_report

        write_report(self, X, y, path, rows=rows, title=title, sizes=sizes, validation=validation)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of each column, (columns,): its share of the impurity removed on (a sample of) the training rows.

        `tartree.explain.importances` gives those of other rows.
        """
        check_is_fitted(self, "tree_")
        self._compute_importances()
        importances = self._model.provenance.importances
        if importances is None:
            raise AttributeError(
                "feature_importances_ is not known of a table read from disk: call explain.importances(model, X, y)"
            )
        return importances

    def _compute_importances(self) -> None:
        """Compute importances from the training rows at hand, once."""
        from tartree.explain.attribution.importances import sample_importances

        model: FittedModel | None = self.__dict__.get("_model")
        if model is not None and model.provenance.importances is None and model.provenance.sample is not None:
            self._model = model.record(importances=sample_importances(self, *model.provenance.sample))
