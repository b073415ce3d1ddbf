"""The centre: a fitted model as a typed value, and the one way to make it."""

from tartree.model.fitted import FittedModel, HasModel, Model, Provenance, fitted_model, like
from tartree.model.pipeline import DataSource, Prepared, build_tree, data_source, fit, prepare
from tartree.model.reading_size import ReadingSize
from tartree.model.sample import Sample
from tartree.model.spec import ModelSpec, generators
from tartree.model.target import ClassCodec, PlainValueCodec, TargetCodec, ValueCodec

__all__ = [
    "ClassCodec",
    "DataSource",
    "FittedModel",
    "HasModel",
    "Model",
    "ModelSpec",
    "PlainValueCodec",
    "Prepared",
    "Provenance",
    "ReadingSize",
    "Sample",
    "TargetCodec",
    "ValueCodec",
    "build_tree",
    "data_source",
    "fit",
    "fitted_model",
    "generators",
    "like",
    "prepare",
]
