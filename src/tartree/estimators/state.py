"""A fitted estimator as plain data and arrays, and back: what a file holds."""

from __future__ import annotations

import numbers
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from tartree.nn.factories import FACTORIES, LEAF_FACTORIES, from_plain, to_plain
from tartree.structure import Structure
from tartree.table import TableEncoder
from tartree.training import Recipe

if TYPE_CHECKING:
    from tartree.estimators.base import BaseTart

Arrays = dict[str, NDArray[Any]]

#: Parameters that are code, which a file never holds.
CODE = ("decision", "leaf", "callbacks")
#: What `simplify` and `harden` found out about the tree; they are saved with it, and go when it changes.
RECORDS = ("certificate_", "hardening_")


def state_of(estimator: BaseTart) -> tuple[dict[str, Any], Arrays]:
    """The document, ready for JSON, and the arrays of a fitted estimator."""
    from tartree import __version__

    settings = dict(estimator._settings)
    given = {name: value for name in ("decision", "leaf") if (value := settings.pop(name)) is not None}
    records = {name: to_plain(value) for name, value in given.items()}
    if None in records.values() or callable(settings["branching"]):
        raise ValueError("decision, leaf and branching must be given by name to be saved, however: one is code")
    parameters = {name: _plain(value) for name, value in estimator.get_params(deep=False).items() if name not in CODE}
    encoder, encoder_arrays = estimator.encoder_.get_state()
    weights = estimator.tree_.state_dict()
    document = {
        "estimator": type(estimator).__name__,
        "tartree": __version__,
        "parameters": parameters,
        "structure": estimator.structure_.to_dict(),
        "tree": {name: _plain(value) for name, value in settings.items()} | records,
        "encoder": encoder,
        "target_name": getattr(estimator, "target_name_", None),
        "fitted": estimator._fitted_data(),
        "importances": _importances(estimator),
        "certificate": _certificate_state(estimator),
        "hardening": _hardening_state(estimator),
        "temperature": getattr(estimator, "temperature_", None),
    }
    arrays = {f"encoder.{name}": value for name, value in encoder_arrays.items()}
    arrays |= {f"tree.{name}": value.detach().cpu().numpy() for name, value in weights.items()}
    if document["hardening"] is not None:
        arrays |= {f"hardening.{name}": getattr(estimator.hardening_, name) for name in ("bounds", "changes")}
    return document, arrays


def restore(cls: type[BaseTart], document: dict[str, Any], arrays: Arrays) -> BaseTart:
    """The estimator of `state_of`; raises what its parts raise when the content does not fit together."""
    parameters = dict(document["parameters"])
    if isinstance(parameters["recipe"], dict):
        parameters["recipe"] = Recipe(**parameters["recipe"])
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    given: dict[str, Any] = {"decision": None, "leaf": None}
    for name, known in (("decision", FACTORIES), ("leaf", LEAF_FACTORIES)):
        if document["tree"].get(name) is not None:
            given[name] = from_plain(document["tree"][name], known)
    estimator = cls(**parameters, **given)
    estimator._set_encoder(TableEncoder.from_state(document["encoder"], _part(arrays, "encoder.")))
    estimator.structure_ = Structure.from_dict(document["structure"])
    estimator._set_fitted_data(document["fitted"])
    estimator._build({**document["tree"], **given})
    weights = {name: torch.from_numpy(value) for name, value in _part(arrays, "tree.").items()}
    estimator.tree_.load_state_dict(weights)
    try:
        device = estimator._device()
    except ValueError:  # the file comes from a machine with another device
        device = torch.device("cpu")
    estimator.tree_.eval().to(device)
    importances = document.get("importances")
    if importances is not None:
        values = np.array(importances, dtype=np.float64)
        if values.shape != (estimator.n_features_in_,) or not (values >= 0).all():
            raise ValueError(f"importances must be one number of at least 0 a column, however: {importances}")
        estimator._importances = values
    if document.get("certificate") is not None:
        estimator.certificate_ = _certificate(document["certificate"], len(estimator.encoder_.features_))
    if document.get("hardening") is not None:
        estimator.hardening_ = _hardening(document["hardening"], _part(arrays, "hardening."))
    temperature = document.get("temperature")  # of a warm start from a grown tree
    if temperature is not None:
        if not isinstance(temperature, int | float) or not 0 < temperature < float("inf"):
            raise ValueError(f"temperature must be a positive number, however: {temperature!r}")
        estimator.temperature_ = float(temperature)
    if document["target_name"] is not None:
        estimator.target_name_ = str(document["target_name"])
    return estimator


def _importances(estimator: BaseTart) -> list[float] | None:
    known = estimator._importances is not None or estimator._sample is not None
    return [float(value) for value in estimator.feature_importances_] if known else None


def _certificate_state(estimator: BaseTart) -> dict[str, Any] | None:
    found = getattr(estimator, "certificate_", None)
    if found is None:
        return None
    # JSON has no tuples, and no infinity, which a bound may be.
    return {**asdict(found), "low": list(found.low), "high": list(found.high), "bound": repr(float(found.bound))}


def _certificate(state: dict[str, Any], n_features: int) -> Any:
    from tartree.explain import Certificate

    box = {name: tuple(float(value) for value in state[name]) for name in ("low", "high")}
    changes = {name: float(state[name]) for name in ("measured", "bound", "sampled")}
    if any(len(side) != n_features for side in box.values()) or not all(value >= 0 for value in changes.values()):
        raise ValueError(f"the certificate must have {n_features} sides of a box and changes of at least 0")
    return Certificate(**{**state, **box, **changes})


def _hardening_state(estimator: BaseTart) -> dict[str, Any] | None:
    found = getattr(estimator, "hardening_", None)
    if found is None:
        return None
    return {"agreement": float(found.agreement), "to_largest": float(found.to_largest), "unit": found.unit}


def _hardening(state: dict[str, Any], arrays: Arrays) -> Any:
    from tartree.explain import Hardening

    bounds, changes = (np.asarray(arrays[name], dtype=np.float64) for name in ("bounds", "changes"))
    if bounds.ndim != 1 or bounds.shape != changes.shape:
        raise ValueError(f"hardening must have a bound and a change a row, however: {bounds.shape}, {changes.shape}")
    return Hardening(float(state["agreement"]), bounds, changes, float(state["to_largest"]), str(state["unit"]))


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it; a random state that is no seed is left out."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Recipe):
        return asdict(value)
    if isinstance(value, dict):  # class weights, whose labels may be numbers
        return [[_plain(key), _plain(weight)] for key, weight in value.items()]
    return value if value is None or isinstance(value, str | numbers.Real) else None
