"""A pretend device: tensors that compute on the CPU, but are on another device for torch and the library.

A forgotten `.to(device)` fails only on a GPU, and few machines that run the tests have one. Here it fails everywhere:
tensors on the pretend device hold values, and an operation that mixes them with tensors on the CPU raises the error of
torch on a GPU. Within `capturing`, so do operations that a CUDA graph cannot hold: waiting for a value, copies between
host and device, results whose shape depends on values.

The device is called "meta", a name that torch accepts. Real meta tensors have no values and are never made here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

NAME = "meta"
DEVICE = torch.device(NAME)

aten = torch.ops.aten
#: Explicit copies from one device to another.
COPIES = {aten._to_copy.default, aten.copy_.default, aten.copy.default, aten.lift_fresh.default}
#: Operations that take a single number from the CPU by value. Pointwise ones, which torch marks, do too.
TAKE_NUMBERS = {
    aten.fill_.Tensor,
    aten.masked_fill.Tensor,
    aten.masked_fill_.Tensor,
    aten.where.self,
}
#: Operations whose index may be on the CPU: torch brings it to the device.
INDEXING = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
#: Operations that must know values on the host, for their result or for its shape.
WAITING = {
    aten._local_scalar_dense.default,
    aten.equal.default,
    aten.is_nonzero.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.unique_consecutive.default,
    aten.repeat_interleave.Tensor,
    aten.bincount.default,
}


class PretendTensor(Tensor):
    """A tensor on the pretend device; `numbers`, on the CPU, are what it computes with."""

    numbers: Tensor
    __slots__ = ("numbers",)
    is_meta = False  # modules do not load weights into meta tensors
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, numbers: Tensor) -> PretendTensor:
        made = Tensor._make_wrapper_subclass(
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=DEVICE,
        )
        made.numbers = numbers
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})

    def __repr__(self, **_) -> str:
        return f"PretendTensor({self.numbers!r})"

    def numpy(self, **_):
        raise TypeError(f"can't convert {NAME} device type tensor to numpy. Use Tensor.cpu() first.")

    __array__ = numpy

    @property
    def data(self) -> Tensor:
        return Tensor.data.__get__(self)

    @data.setter
    def data(self, value: PretendTensor) -> None:
        Tensor.data.__set__(self, value)
        self.numbers = value.numbers

    def data_ptr(self) -> int:
        return self.numbers.data_ptr()

    def tolist(self):
        return self.cpu().tolist()

    def __reduce_ex__(self, protocol):
        return _unpickled, (self.detach().numbers, self.requires_grad, getattr(self, "_is_param", False))


def _unpickled(numbers: Tensor, requires_grad: bool, is_parameter: bool) -> Tensor:
    made = PretendTensor(numbers).requires_grad_(requires_grad)
    made._is_param = is_parameter  # marks parameters of other classes for torch
    return made


class _State(threading.local):
    capturing = False


_state = _State()


class PretendDevice(TorchDispatchMode):
    """While active, tensors that are made on the device "meta" or moved to it are on the pretend device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


@contextmanager
def pretend_device() -> Iterator[torch.device]:
    """Activate the pretend device, also in threads that are started meanwhile."""
    with _patched(), PretendDevice():
        yield DEVICE


@contextmanager
def auto_is(device: torch.device) -> Iterator[None]:
    """Let estimators with ``device="auto"`` use this device, as they would use a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tartree.model.spec.default_device", lambda: device)
        yield


@contextmanager
def capturing() -> Iterator[None]:
    """Raise an error for operations that a CUDA graph cannot capture."""
    _state.capturing = True
    try:
        yield
    finally:
        _state.capturing = False


def compute(func, args, kwargs):
    """Run an operation on the CPU, with the errors of a GPU."""
    flat, spec = tree_flatten((args, kwargs))
    tensors = [x for x in flat if isinstance(x, Tensor)]
    pretended = [x for x in tensors if isinstance(x, PretendTensor)]
    plain = [x for x in tensors if not isinstance(x, PretendTensor)]
    if any(x.device == DEVICE for x in plain):
        raise AssertionError(f"{func} got a meta tensor without values: was a list used as an index?")
    asked = kwargs.get("device")
    target = bool(pretended) if asked is None else torch.device(asked) == DEVICE
    if pretended and plain:
        _check_mixed(func, args, kwargs, plain)
    if (target or pretended) and (generator := kwargs.get("generator")) is not None and func not in COPIES:
        raise RuntimeError(f"Expected a '{NAME}' device type for generator but result '{generator.device}'")
    if _state.capturing:
        _check_captured(func, args, pretended, plain, target)
    if not pretended and not target:
        return func(*args, **kwargs)
    inner = [x.numbers if isinstance(x, PretendTensor) else x for x in flat]
    inner_args, inner_kwargs = tree_unflatten(inner, spec)
    if asked is not None:
        inner_kwargs["device"] = torch.device("cpu")
        inner_kwargs.pop("pin_memory", None)
        if func is aten._to_copy.default and torch.device(asked) != args[0].device:
            inner_kwargs["non_blocking"] = False
            # A copy, as between devices: on the CPU alone the same memory could come back.
            made = func(*inner_args, **inner_kwargs)
            return PretendTensor(made) if target else made
    result = func(*inner_args, **inner_kwargs)
    if func is aten.copy_.default:
        return args[0]
    if isinstance(result, Tensor) and not target:
        return result
    outer = {id(x.numbers): x for x in pretended}

    def wrapped(x):
        if not isinstance(x, Tensor):
            return x
        return outer[id(x)] if id(x) in outer else PretendTensor(x)

    return tree_map(wrapped, result)


def _check_mixed(func, args, kwargs, plain) -> None:
    if func in COPIES:
        return
    left = list(plain)
    if func in INDEXING:
        if not isinstance(args[0], PretendTensor):
            raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
        index = {id(x) for x in args[1] if x is not None}
        left = [x for x in left if id(x) not in index]
        left = [x for x in left if x.dim()]  # a value
    elif torch.Tag.pointwise in func.tags or func in TAKE_NUMBERS:
        first = args[0] if args and isinstance(args[0], Tensor) else None
        changes_cpu = func._schema.is_mutable and first is not None and not isinstance(first, PretendTensor)
        left = left if changes_cpu else [x for x in left if x.dim()]
    if left:
        shapes = [tuple(x.shape) for x in left]
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {NAME} and cpu! "
            f"({func}, shapes on the CPU: {shapes})"
        )


def _check_captured(func, args, pretended, plain, target: bool) -> None:
    if func in WAITING and pretended:
        raise RuntimeError(f"operation not permitted when stream is capturing: {func} waits for the device")
    crosses = func in COPIES and ((bool(plain) and (target or bool(pretended))) or (bool(pretended) and not target))
    crosses = crosses or (func is aten.where.self and bool(pretended) and bool(plain))
    if func in INDEXING:
        crosses = bool(pretended) and any(not isinstance(x, PretendTensor) for x in args[1] if x is not None)
        if any(x is not None and x.dtype in (torch.bool, torch.uint8) for x in args[1]) and pretended:
            raise RuntimeError(f"operation not permitted when stream is capturing: {func} by a mask")
    if crosses:
        raise RuntimeError(
            "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. "
            f"({func})"
        )


@contextmanager
def _patched() -> Iterator[None]:
    """Patch functions of torch that treat meta tensors specially, and threads, which have separate modes."""
    tensor, as_tensor, autocast = torch.tensor, torch.as_tensor, torch.is_autocast_enabled
    run = threading.Thread.run

    def made(function):
        def made_on_cpu(data, *, dtype=None, device=None, **rest):
            if device is None or torch.device(device) != DEVICE:
                return function(data, dtype=dtype, device=device, **rest)
            requires_grad = rest.pop("requires_grad", False)
            result = function(data, dtype=dtype, device="cpu", **rest).to(DEVICE)
            return result.requires_grad_() if requires_grad else result

        return made_on_cpu

    def run_with_device(self):
        with PretendDevice():
            run(self)

    torch.tensor, torch.as_tensor = made(tensor), made(as_tensor)
    torch.is_autocast_enabled = lambda device_type="cpu": device_type != NAME and autocast(device_type)
    threading.Thread.run = run_with_device
    try:
        yield
    finally:
        torch.tensor, torch.as_tensor, torch.is_autocast_enabled = tensor, as_tensor, autocast
        threading.Thread.run = run
