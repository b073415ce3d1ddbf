"""Named models: functions of a name that return an unfitted estimator."""

from tartree.zoo.presets import PRESETS, Preset, make

__all__ = ["PRESETS", "Preset", "make"]
