"""Other soft trees, imported from clones that the user names; none of their code is in this repository.

Each is trained and queried as in its original program, on the same tensors as ours.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from timing.work import Work

Functions = dict[str, Callable[[], Any]]
#: Folder below --peers, and address.
CLONES = {
    "leesael/TART": ("TART", "https://github.com/leesael/TART"),
    "xuyxu/Soft-Decision-Tree": ("xuyxu-Soft-Decision-Tree", "https://github.com/xuyxu/Soft-Decision-Tree"),
    "endymion64/SoftDecisionTree": ("endymion64-SoftDecisionTree", "https://github.com/endymion64/SoftDecisionTree"),
    "kimhc6028/soft-decision-tree": ("kimhc6028-soft-decision-tree", "https://github.com/kimhc6028/soft-decision-tree"),
}
PEERS = [*CLONES, "neural-trees"]
HELP = "a folder with clones: " + ", ".join(f"{address} as {folder}" for folder, address in CLONES.values())


def is_installed(name: str, folder: Path | None) -> bool:
    """Return whether a peer is installed."""
    if name in CLONES:
        return folder is not None and (folder / CLONES[name][0]).is_dir()
    return importlib.util.find_spec("neural_trees") is not None


def make_peer(name: str, folder: Path | None, work: Work, x: Tensor, y: Tensor) -> Functions:
    """Return functions "step" and "predict" of a peer; its errors are passed on."""
    makers = {
        "leesael/TART": _tart,
        "xuyxu/Soft-Decision-Tree": _xuyxu,
        "endymion64/SoftDecisionTree": _endymion64,
        "kimhc6028/soft-decision-tree": _kimhc6028,
    }
    if name == "neural-trees":
        return _quiet(_neural_trees(work, x, y))
    assert folder is not None
    return _quiet(makers[name](folder / CLONES[name][0], work, x, y))


def _load(path: Path, name: str) -> ModuleType:
    """Load a module from a file, under a unique name: several peers have a `model`."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise FileNotFoundError(f"its clone has no {path.name}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _quiet(functions: Functions) -> Functions:
    """Silence warnings about deprecated functions of torch, which would cost time in every call."""
    warnings.filterwarnings("ignore", module=r".*(functional|container|module)")
    return functions


def _with_adam(loss: Callable[[], Tensor], parameters: Any, **settings: Any) -> Callable[[], None]:
    adam = torch.optim.Adam(parameters, **settings)

    def step() -> None:
        adam.zero_grad()
        loss().backward()
        adam.step()

    return step


def _tart(folder: Path, work: Work, x: Tensor, y: Tensor) -> Functions:
    source = str(folder / "src")
    if not Path(source, "tart").is_dir():
        raise FileNotFoundError("its clone has no src/tart")
    sys.path.insert(0, source)
    try:
        make_tree = importlib.import_module("tart").make_tree
    finally:
        sys.path.remove(source)
    model = make_tree(
        work.features, work.classes, work.depth, work.window, leaf_layers=work.leaf_layers, style="ensemble"
    ).to(x.device)
    return {"step": _with_adam(lambda: model.loss(x, y), model.parameters(), lr=5e-3), "predict": _no_grad(model, x)}


def _xuyxu(folder: Path, work: Work, x: Tensor, y: Tensor) -> Functions:
    module = _load(folder / "SDT.py", "xuyxu_sdt")
    model = module.SDT(work.features, work.classes, work.depth, 1e-3, x.device.type == "cuda").to(x.device)

    def loss() -> Tensor:
        output, penalty = model.forward(x, is_training_data=True)
        total: Tensor = F.cross_entropy(output, y) + penalty
        return total

    return {"step": _with_adam(loss, model.parameters(), lr=1e-3, weight_decay=5e-4), "predict": _no_grad(model, x)}


def _endymion64(folder: Path, work: Work, x: Tensor, y: Tensor) -> Functions:
    try:
        importlib.import_module("torch.utils.tensorboard")
    except ImportError:  # imported, but only used with an option
        stand_in = ModuleType("torch.utils.tensorboard")
        stand_in.SummaryWriter = object  # type: ignore[attr-defined]
        sys.modules["torch.utils.tensorboard"] = stand_in
    module = _load(folder / "sdt" / "model.py", "endymion64_model")
    model = module.SoftDecisionTree(
        Namespace(
            depth=work.depth, input_dim=work.features, output_dim=work.classes, lmbda=0.1, device=x.device,
            tensorboard=False, save="",
        )
    )  # fmt: skip
    target = F.one_hot(y, work.classes).float()

    def step() -> None:
        model.optimizer.zero_grad()
        model._calc_loss(x, target)[0].backward()
        nn.utils.clip_grad_norm_(model.parameters(), 40)
        model.optimizer.step()

    return {"step": step, "predict": _no_grad(model._calc_loss, x, target)}


def _kimhc6028(folder: Path, work: Work, x: Tensor, y: Tensor) -> Functions:
    module = _load(folder / "model.py", "kimhc6028_model")
    cuda = x.device.type == "cuda"
    model = module.SoftDecisionTree(
        Namespace(
            input_dim=work.features, output_dim=work.classes, max_depth=work.depth, lr=0.01, lmbda=0.1, momentum=0.5,
            batch_size=len(x), cuda=cuda,
        )
    ).to(x.device)  # fmt: skip
    target = F.one_hot(y, work.classes).float()

    def step() -> None:
        model.optimizer.zero_grad()
        model.cal_loss(x, target)[0].backward()
        model.optimizer.step()

    return {"step": step, "predict": _no_grad(model.cal_loss, x, target)}


def _neural_trees(work: Work, x: Tensor, y: Tensor) -> Functions:
    from neural_trees.decision_trees.soft_decision_tree import _SoftTreeModule

    model = _SoftTreeModule(work.features, work.classes, work.depth, 1e-3, learn_temperature=False).to(x.device)

    def loss() -> Tensor:
        total: Tensor = F.nll_loss(model.log_forward(x), y) + model.penalty(x)
        return total

    return {"step": _with_adam(loss, model.parameters(), lr=0.01), "predict": _no_grad(model, x)}


def _no_grad(function: Callable[..., Any], *arguments: Tensor) -> Callable[[], Any]:
    def call() -> Any:
        with torch.no_grad():
            return function(*arguments)

    return call
