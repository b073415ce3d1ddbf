"""Fitted models as plain data and arrays, and back: what a file holds."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
import torch

from tartree import persist
from tartree.model.fitted import FittedModel, Provenance
from tartree.model.pipeline import build_tree
from tartree.model.records import RECORDS, Arrays, Record
from tartree.model.spec import find_device
from tartree.model.target import CODECS, saved_codec
from tartree.nn.factories import FACTORIES, LEAF_FACTORIES, from_plain, to_plain
from tartree.structure import Structure
from tartree.table import TableEncoder
from tartree.training import Recipe

#: Parameters that are code, which a file never holds.
CODE = ("decision", "leaf", "callbacks")


class SavedModel(NamedTuple):
    """A model from a file, with the parameters of the estimator that held it."""

    parameters: dict[str, Any]
    model: FittedModel


def save(path: str | PathLike[str], model: FittedModel, parameters: Mapping[str, Any]) -> None:
    """Write a model and the parameters of its estimator to one file; no pickle."""
    persist.write(path, *to_state(model, parameters))


def load(path: str | PathLike[str], records: Mapping[str, type[Record]]) -> SavedModel:
    """Read what `save` wrote; `records` are the classes of certificates and the like."""
    document, arrays = persist.read(path)
    estimators = dict.fromkeys(codec.estimator for codec in CODECS.values())
    if document.get("estimator") not in estimators:
        raise persist.ModelFileError(
            f"{fspath(path)}: it must hold one of {', '.join(estimators)}, got {document.get('estimator')!r}"
        )
    try:
        return from_state(document, arrays, records)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise persist.ModelFileError(f"{fspath(path)}: its content does not fit together: {reason}") from error


def to_state(model: FittedModel, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """Return the document, ready for JSON, and the arrays of a model."""
    from tartree import __version__

    provenance = model.provenance
    settings = dict(provenance.settings)
    factories = {name: factory for name in ("decision", "leaf") if (factory := settings.pop(name)) is not None}
    plain_factories = {name: to_plain(factory) for name, factory in factories.items()}
    if None in plain_factories.values() or callable(settings["branching"]):
        raise ValueError("decision, leaf and branching must be given by name to be saved, but one is code")
    if not isinstance(model.encoder, TableEncoder):
        raise ValueError(f"a model must have a TableEncoder to be saved, got {type(model.encoder).__name__}")
    encoder, encoder_arrays = model.encoder.get_state()
    importances = provenance.importances
    document = {
        "estimator": model.codec.estimator,
        "tartree": __version__,
        "parameters": {name: _plain(value) for name, value in parameters.items() if name not in CODE},
        "structure": model.structure.to_dict(),
        "tree": {name: _plain(value) for name, value in settings.items()} | plain_factories,
        "encoder": encoder,
        "target_name": provenance.target_name,
        "fitted": model.codec.to_state(),
        "importances": None if importances is None else [float(value) for value in importances],
        **dict.fromkeys(RECORDS),
        "temperature": provenance.temperature,
    }
    arrays = {f"encoder.{name}": value for name, value in encoder_arrays.items()}
    arrays |= {f"tree.{name}": value.detach().cpu().numpy() for name, value in model.tree.state_dict().items()}
    for name in RECORDS:
        record: Record | None = getattr(provenance, name)
        if record is not None:
            document[name], record_arrays = record.to_state()
            arrays |= {f"{name}.{key}": value for key, value in record_arrays.items()}
    return document, arrays


def from_state(document: Mapping[str, Any], arrays: Arrays, records: Mapping[str, type[Record]]) -> SavedModel:
    """Read what `to_state` returned; raises what its parts raise if the content does not fit together."""
    parameters = dict(document["parameters"])
    if isinstance(parameters["recipe"], dict):
        parameters["recipe"] = Recipe(**parameters["recipe"])
    for name in ("class_weight", "columns"):
        if isinstance(parameters.get(name), list):
            parameters[name] = dict(parameters[name])
    factories: dict[str, Any] = {"decision": None, "leaf": None}
    for name, registry in (("decision", FACTORIES), ("leaf", LEAF_FACTORIES)):
        if document["tree"].get(name) is not None:
            factories[name] = from_plain(document["tree"][name], registry)
    settings = {**document["tree"], **factories}
    encoder = TableEncoder.from_state(document["encoder"], _part(arrays, "encoder."))
    codec = saved_codec(document["estimator"], document["fitted"]).from_state(document["fitted"])
    tree = build_tree(Structure.from_dict(document["structure"]), len(encoder.features_), codec.output, settings)
    tree.load_state_dict({name: torch.from_numpy(value) for name, value in _part(arrays, "tree.").items()})
    saved_records: dict[str, Any] = {
        name: records[name].from_state(document[name], _part(arrays, f"{name}."), len(encoder.features_))
        for name in RECORDS
        if document.get(name) is not None
    }
    provenance = Provenance(
        settings,
        target_name=None if document["target_name"] is None else str(document["target_name"]),
        importances=_importances(document.get("importances"), encoder.n_features_in_),
        temperature=_temperature(document.get("temperature")),
        **saved_records,
    )
    try:
        device = find_device(parameters["device"])
    except ValueError:  # the file comes from a machine with another device
        device = torch.device("cpu")
    model = FittedModel(encoder, tree.eval().to(device), codec, parameters["selection"], provenance)
    return SavedModel({**parameters, **factories}, model)


def _importances(values: Any, n_columns: int) -> Any:
    if values is None:
        return None
    importances = np.array(values, dtype=np.float64)
    if importances.shape != (n_columns,) or not (importances >= 0).all():
        raise ValueError(f"importances must be one number of at least 0 a column, got {values}")
    return importances


def _temperature(value: Any) -> float | None:
    if value is not None and (not isinstance(value, int | float) or not 0 < value < float("inf")):
        raise ValueError(f"temperature must be a positive number, got {value!r}")
    return None if value is None else float(value)


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def _plain(value: Any) -> Any:
    """Return a parameter as JSON can hold it; a random state that is no seed is left out."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Recipe):
        return asdict(value)
    if isinstance(value, Mapping):  # class weights and kinds of columns, whose keys may be numbers
        return [[_plain(key), _plain(item)] for key, item in value.items()]
    return value if value is None or isinstance(value, str | numbers.Real) else None
