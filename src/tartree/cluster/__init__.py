"""Beyond one machine: the same estimators on a Ray cluster. Needs the extra `ray`, which is loaded when it is used.

`fit` trains one model on many workers, `predict` shares rows out, `spread` shares out anything that can be called, and
`joblib_backend` gives the cluster to whatever knows joblib: `StructureSearch`, scikit-learn's searches.
"""

from tartree.cluster.backend import joblib_backend
from tartree.cluster.connecting import connected
from tartree.cluster.fitting import fit
from tartree.cluster.predicting import predict
from tartree.cluster.spreading import spread

__all__ = ["connected", "fit", "joblib_backend", "predict", "spread"]
