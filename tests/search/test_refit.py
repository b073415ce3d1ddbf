"""The chosen structure is fitted to all rows, or the next one if that fails."""

import signal
from dataclasses import replace

import pytest
from sklearn.exceptions import NotFittedError

from tartree import StructureSearch, TartClassifier
from tartree.search import refit

QUICK = TartClassifier(epochs=18)
SPACE = {"depth": [0, 1, 2], "leaf_layers": [1]}


def test_a_limit_of_leaves_holds_after_the_refit(iris, monkeypatch):
    search = StructureSearch(QUICK, {"depth": [0, 1, 2]}, rule="best", max_leaves=4, halving=None, random_state=0)
    first = search.fit(*iris).best_params_["depth"]
    original = refit.size_of

    def more(model, X):
        found = original(model, X)
        return replace(found, leaves=5.0) if model.depth == first else found

    monkeypatch.setattr(refit, "size_of", more)
    assert search.fit(*iris).best_params_["depth"] == search.best_estimator_.depth != first
    assert search.best_size_.leaves <= 4
    assert search.trials_[first]["reason"] == "fitted to all rows, it uses 5 leaves"
    with pytest.raises(ValueError, match="with max_leaves=4, got fitted to all rows, it uses 5 leaves"):
        search.set_params(space={"depth": [first]}).fit(*iris)


def test_a_refit_that_fails_gives_way_to_the_next(iris, monkeypatch):
    search = StructureSearch(QUICK, SPACE, rule="best", halving=None, random_state=0).fit(*iris)
    first = search.best_params_["depth"]
    fit = TartClassifier.fit

    def fail(self, X, y, sample_weight=None):
        if self.depth == first:
            raise MemoryError("no room")
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(TartClassifier, "fit", fail)
    search.fit(*iris)
    assert search.best_params_["depth"] == search.best_estimator_.depth != first
    failed = next(trial for trial in search.trials_ if trial["params"]["depth"] == first)
    assert failed["reason"] == "it could not be fitted to all rows: there is not enough memory for it: no room"
    assert search.best_score_ <= failed["score"]
    search.set_params(space={"depth": [first]})
    with pytest.raises(ValueError, match=r"that can be fitted to all rows, got .*no room"):
        search.fit(*iris)
    assert search.best_params_ == {"depth": first}


def interrupt(epoch):
    if epoch.number == 2:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("when", ["before the first epoch", "after some"])
def test_interrupted_in_the_refit(iris, when, request):
    if when == "before the first epoch":
        request.getfixturevalue("interrupted_refit")
    base = QUICK if when == "before the first epoch" else TartClassifier(epochs=18, callbacks=interrupt)
    with pytest.warns(UserWarning, match="there is no best_estimator_; best_params_, front_ and trials_ hold"):
        search = StructureSearch(base, SPACE, random_state=0).fit(*iris)
    assert search.interrupted_
    assert search.best_params_ == search.trials_[search.best_index_]["params"]
    assert search.front_
    with pytest.raises(NotFittedError):
        search.predict(iris[0])
