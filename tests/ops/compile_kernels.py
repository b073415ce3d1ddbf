"""Compile every Triton kernel for a GPU that need not be there, as its callers would launch it; prints their names."""

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tartree import Structure
from tartree.nn import unit_kernels
from tartree.nn.hidden_units import FusedUnits
from tartree.ops import backend, fused, kernels
from tartree.training import step_kernels
from tartree.training.adam import KernelAdam

TARGET = GPUTarget("cuda", 90, 32)
POINTERS = {torch.float32: "*fp32", torch.int64: "*i64"}
compiled = {}


class Compiler:
    """Stands in for a kernel: a launch compiles it for the types that came."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return self.launch

    def launch(self, *arguments, num_warps=4, **constants):
        given = dict(zip(self.kernel.arg_names, arguments, strict=False)) | constants
        signature, values = {}, {}
        for i, name in enumerate(self.kernel.arg_names):
            value = given[name]
            if name.isupper():
                signature[name], values[(i,)] = "constexpr", getattr(value, "value", value)
            elif isinstance(value, torch.Tensor):
                signature[name] = POINTERS[value.dtype]
            else:
                signature[name] = "fp32" if isinstance(value, float) else "i32"
        source = ASTSource(self.kernel, signature, values)
        code = triton.compile(source, target=TARGET, options={"num_warps": num_warps}).asm["ptx"]
        assert ".entry " + self.kernel.__name__ in code
        compiled[self.kernel.__name__] = True


def main():
    assert backend.has_triton()  # which every caller asks first
    for module, names in (
        (kernels, ["binary", "layered", "finish", "pick"]),
        (step_kernels, ["gather", "advance", "adam"]),
        (unit_kernels, ["forward", "backward"]),
    ):
        for name in names:
            setattr(module, name, Compiler(getattr(module, name)))
    for structure, constant in ((Structure(5), True), (Structure(2), False), (Structure(2, 3, 2), True)):
        logits = torch.zeros(1, 8, structure.n_logits)
        numbers = torch.zeros(1, 1 if constant else 8, structure.n_leaves, 3)
        parts = (logits, torch.zeros(1, structure.n_logits), numbers, None if constant else numbers[:, 0])
        fused.expected_cost(*parts, torch.zeros(8, dtype=torch.int64), None, structure)
        fused.probabilities(*parts, structure)
        fused.probabilities_of_best(*parts, structure)
    x, whole = torch.zeros(4, 4, requires_grad=True), torch.zeros(4, dtype=torch.int64)
    step_kernels.gather[(4,)](x, whole, whole, whole, x, whole, whole, 1, 4, 4, FEATURES=4)
    step_kernels.advance[(1,)](whole, x, x, x, x, 1, 1.0, 2, MEMBERS=2)
    x.grad = torch.ones(4, 4)
    KernelAdam([([x], 0.1)]).step(torch.zeros(4))
    for dropout in (0.0, 0.5):
        FusedUnits.apply(torch.zeros(1, 1, 9, 8, requires_grad=True), torch.zeros(1, 9), dropout).sum().backward()
    print(*compiled)


if __name__ == "__main__":
    main()
