"""Estimators on a Ray cluster. Needs the extra `ray`, which is loaded when it is used.

`fit` trains one model on many workers, `predict` distributes rows, `spread` distributes the calls of any function, and
`joblib_backend` runs the calls of joblib there: those of `StructureSearch` and of scikit-learn's searches.
"""

from tartree.cluster.connection import connected
from tartree.cluster.distributed_fit import fit
from tartree.cluster.distributed_prediction import predict
from tartree.cluster.joblib_tasks import joblib_backend
from tartree.cluster.task_pool import spread

__all__ = ["connected", "fit", "joblib_backend", "predict", "spread"]
