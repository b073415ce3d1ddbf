"""Exploration: candidates of a search are made, encoded, trained and recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tartree.search.candidates import Candidate, configured, make_candidate
from tartree.search.engine import Engine, describe
from tartree.search.search_data import SearchData
from tartree.search.search_spec import SearchSpec
from tartree.search.spaces import Parameters
from tartree.search.trials import Trial


@dataclass(frozen=True, eq=False)
class Exploration:
    """A search under way.

    Parameters
    ----------
    spec : SearchSpec
    data : SearchData
    engine : Engine
    """

    spec: SearchSpec
    data: SearchData
    engine: Engine

    @property
    def trials(self) -> list[Trial]:
        """Trials so far."""
        return self.engine.trials[0]

    def run(self, params: Sequence[Parameters]) -> None:
        """Train candidates through all rungs."""
        self.engine.run(self._candidates(params))

    def _candidates(self, params: Sequence[Parameters]) -> list[Candidate]:
        """Return candidates whose tables are encoded, and record wrong parameters as failed trials."""
        candidates, base = [], self.spec.estimator
        tables = self.engine.problem.tables
        for number, changes in enumerate(params, start=len(self.trials)):
            configured(base, changes)  # a name that is no parameter is an error of the whole space
            try:
                candidate = make_candidate(base, changes, number, self.data.n_counted)
                hash(candidate.training)  # raises here if values cannot be compared
                if candidate.table not in tables:
                    tables[candidate.table] = self.data.encode(configured(base, changes).spec())
                candidates.append(candidate)
            except Exception as error:
                self.trials.append(Trial(number, changes, 0, state="failed", reason=describe(error)))
        return candidates
