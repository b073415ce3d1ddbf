"""Triton kernels behind `fused`: imported only where Triton is and the tensors are on a GPU.

A program takes a block of rows of the table and walks a whole subtree in registers: down for the arrivals, through the
leaves, up for the expected values and the gradient. Tensors are nodes first, ``(members, nodes, batch)``, so that the
rows of a block are contiguous. Inside, tiles are ``(rows, nodes)``: the two children of a node are then neighbours, and
`tl.join` and `tl.split` are a step down and a step up.

At the leaves, a kernel does one of these:

- ``ARRIVE``: write the arrival, and end.
- ``VALUES``: read the value of each leaf and row (a gradient, or the expected value of a lower part of the tree).
- ``CONSTANT``: leaves with the same class logits for every row; the value is the cross entropy of the row's class. Sums
  the arrival of each class at each leaf.
- ``NUMBERS``: leaves with class logits that differ by row; writes their gradient.
- ``PREDICT_CONSTANT``, ``PREDICT_NUMBERS``: sums the class probabilities by arrival, and ends.
- ``BEST``: writes the leaf of the largest arrival, and ends.
"""

# Kernels are compiled from source, not run: annotations and types are Triton's own.
# mypy: ignore-errors
# ruff: noqa: SIM109

from __future__ import annotations

import triton
import triton.language as tl

ARRIVE = tl.constexpr(0)
VALUES = tl.constexpr(1)
CONSTANT = tl.constexpr(2)
NUMBERS = tl.constexpr(3)
PREDICT_CONSTANT = tl.constexpr(4)
PREDICT_NUMBERS = tl.constexpr(5)
BEST = tl.constexpr(6)

#: Arguments that Triton must not specialise on: it would compile a kernel anew for some values, and gain nothing.
SIZES = [
    *("depth", "n_nodes", "n_all", "n_leaves", "n_classes", "share_stride", "target_stride"),
    *("n_blocks", "n_biases", "bias_programs", "leaf_programs", "n_parts"),
]


@triton.jit
def _sigmoids(z):
    """Return sigmoid(z) and sigmoid(-z) from one exponential; neither rounds to 0 too early."""
    e = tl.exp(-tl.abs(z))
    large = 1.0 / (1.0 + e)
    small = e * large
    return tl.where(z >= 0, large, small), tl.where(z >= 0, small, large)


@triton.jit
def _load_rows(pointer, bias, nodes, rows, inside, batch, HAS_BIAS: tl.constexpr):
    """Load the logits of some nodes and rows, with their biases: a tile (rows, nodes)."""
    z = tl.load(pointer + nodes[None, :] * batch + rows[:, None], mask=inside[:, None], other=0.0).to(tl.float32)
    if HAS_BIAS:
        z += tl.load(bias + nodes)[None, :]
    return z


@triton.jit
def _leaf_logit(base, base_bias, c, batch, mask, real, HAS_NUMBERS_BIAS: tl.constexpr):
    """Load the logit of a class at some leaves: a tile (rows, leaves)."""
    logit = tl.load(base + c * batch, mask=mask, other=0.0).to(tl.float32)
    if HAS_NUMBERS_BIAS:
        logit += tl.load(base_bias + c, mask=real, other=0.0)[None, :]
    return logit


@triton.jit
def _at_leaves(
    p,
    leaves,
    real,  # which of the leaves exist
    rows,
    inside,
    part,  # where sums of this program go
    member,
    n_leaves,
    batch,
    numbers,
    numbers_bias,
    numbers_gradient,
    numbers_bias_parts,
    target,
    out,
    n_classes,
    MODE: tl.constexpr,
    CLASSES: tl.constexpr,
    CLASS_BLOCK: tl.constexpr,
    HAS_NUMBERS_BIAS: tl.constexpr,
):
    """Return the values of leaves, a tile (rows, leaves), from their arrival; write the outputs of the mode."""
    ROWS: tl.constexpr = p.shape[0]
    LEAVES: tl.constexpr = p.shape[1]
    v = p
    mask = inside[:, None] & real[None, :]
    if MODE == ARRIVE:
        tl.store(out + (member * n_leaves + leaves[None, :]) * batch + rows[:, None], p, mask=mask)
    elif MODE == VALUES:
        v = tl.load(numbers + (member * n_leaves + leaves[None, :]) * batch + rows[:, None], mask=mask, other=0.0)
        v = v.to(tl.float32)
    elif MODE == BEST:
        largest, index = tl.max(
            tl.where(real[None, :], p, -1.0), 1, return_indices=True, return_indices_tie_break_left=True
        )
        position = (part * tl.num_programs(2) + member) * batch + rows
        tl.store(out + position, largest, mask=inside)
        tl.store(numbers_gradient + position, tl.min(leaves, 0) + index, mask=inside)
    elif MODE == CONSTANT or MODE == PREDICT_CONSTANT:
        base = numbers + member * n_leaves * n_classes
        classes = tl.arange(0, CLASS_BLOCK)
        class_mask = real[:, None] & (classes < n_classes)[None, :]
        table = tl.load(base + leaves[:, None] * n_classes + classes[None, :], mask=class_mask, other=float("-inf"))
        table = tl.where(real[:, None], table.to(tl.float32), 0.0)  # (leaves, classes)
        top = tl.max(table, 1)
        exponents = tl.exp(table - top[:, None])
        total = tl.sum(exponents, 1)
        if MODE == CONSTANT:
            log_total = top + tl.log(total)
            label = tl.load(target + rows, mask=inside, other=0)
            target_logit = tl.load(base + leaves[None, :] * n_classes + label[:, None], mask=mask, other=0.0)
            v = tl.where(mask, log_total[None, :] - target_logit.to(tl.float32), 0.0)
            position = numbers_gradient + ((part * tl.num_programs(2) + member) * n_leaves + leaves) * n_classes
            if LEAVES >= 16:
                chosen = (classes[:, None] == label[None, :]).to(tl.float32)  # (classes, rows)
                mass = tl.dot(chosen, p, input_precision="ieee")  # (classes, leaves)
                tl.store(
                    position[None, :] + classes[:, None], mass, mask=real[None, :] & (classes < n_classes)[:, None]
                )
            else:
                for c in range(n_classes):
                    tl.store(position + c, tl.sum(tl.where(label[:, None] == c, p, 0.0), 0), mask=real)
        else:
            shares = exponents / total[:, None]  # (leaves, classes)
            position = out + ((part * tl.num_programs(2) + member) * batch + rows) * n_classes
            if LEAVES >= 16:
                answer = tl.dot(p, shares, input_precision="ieee")  # (rows, classes)
                tl.store(
                    position[:, None] + classes[None, :], answer, mask=inside[:, None] & (classes < n_classes)[None, :]
                )
            else:
                for c in range(n_classes):
                    column = tl.sum(tl.where((classes == c)[None, :], shares, 0.0), 1)  # (leaves,)
                    tl.store(position + c, tl.sum(p * column[None, :], 1), mask=inside)
    elif MODE == PREDICT_NUMBERS and CLASSES > 0:
        # No loop waits for its loads: all loads of a pass run at once, and later ones hit the cache.
        base = numbers + (member * n_leaves + leaves[None, :]) * CLASSES * batch + rows[:, None]
        base_bias = numbers_bias + (member * n_leaves + leaves) * CLASSES
        top = tl.full([ROWS, LEAVES], float("-inf"), tl.float32)
        for c in tl.static_range(CLASSES):
            top = tl.maximum(top, _leaf_logit(base, base_bias, c, batch, mask, real, HAS_NUMBERS_BIAS))
        total = tl.zeros([ROWS, LEAVES], tl.float32)
        for c in tl.static_range(CLASSES):
            total += tl.exp(_leaf_logit(base, base_bias, c, batch, mask, real, HAS_NUMBERS_BIAS) - top)
        arriving = tl.where(real[None, :], p / total, 0.0)
        position = out + ((part * tl.num_programs(2) + member) * batch + rows) * CLASSES
        for c in tl.static_range(CLASSES):
            answer = arriving * tl.exp(_leaf_logit(base, base_bias, c, batch, mask, real, HAS_NUMBERS_BIAS) - top)
            tl.store(position + c, tl.sum(answer, 1), mask=inside)
    else:  # NUMBERS or PREDICT_NUMBERS
        base = numbers + (member * n_leaves + leaves[None, :]) * n_classes * batch + rows[:, None]
        base_bias = numbers_bias + (member * n_leaves + leaves) * n_classes
        top = tl.full([ROWS, LEAVES], float("-inf"), tl.float32)
        total = tl.zeros([ROWS, LEAVES], tl.float32)
        target_logit = tl.zeros([ROWS, LEAVES], tl.float32)
        label = rows
        if MODE == NUMBERS:
            label = tl.load(target + rows, mask=inside, other=0)
        for c in range(n_classes):
            logit = _leaf_logit(base, base_bias, c, batch, mask, real, HAS_NUMBERS_BIAS)
            higher = tl.maximum(top, logit)
            total = total * tl.exp(top - higher) + tl.exp(logit - higher)
            top = higher
            if MODE == NUMBERS:
                target_logit = tl.where(label[:, None] == c, logit, target_logit)
        log_total = top + tl.log(total)
        if MODE == NUMBERS:
            v = tl.where(mask, log_total - target_logit, 0.0)
        for c in range(n_classes):
            logit = _leaf_logit(base, base_bias, c, batch, mask, real, HAS_NUMBERS_BIAS)
            answer = p * tl.exp(logit - log_total)
            if MODE == NUMBERS:
                gradient = tl.where(label[:, None] == c, answer - p, answer)
                position = (member * n_leaves + leaves[None, :]) * n_classes * batch + rows[:, None] + c * batch
                tl.store(numbers_gradient + position, gradient, mask=mask)
                if HAS_NUMBERS_BIAS:
                    first = ((part * tl.num_programs(2) + member) * n_leaves + leaves) * n_classes
                    tl.store(numbers_bias_parts + first + c, tl.sum(gradient, 0), mask=real)
            else:
                position = out + ((part * tl.num_programs(2) + member) * batch + rows) * n_classes
                tl.store(position + c, tl.sum(tl.where(real[None, :], answer, 0.0), 1), mask=inside)
    return v


@triton.jit(do_not_specialize=SIZES)
def binary(
    logits,  # (members, nodes, batch)
    bias,  # (members, nodes)
    share,  # (members or 1, batch): what each row brings to the root
    target,  # (members or 1, batch)
    numbers,  # (members, leaves, ...)
    numbers_bias,
    logits_gradient,
    bias_parts,  # (blocks, members, nodes)
    numbers_gradient,
    numbers_bias_parts,
    roots,  # (members, subtrees, batch): what is expected at the root of each subtree
    loss_parts,  # (members, blocks)
    out,
    batch,
    n_nodes,
    n_leaves,
    n_classes,
    share_stride,
    target_stride,
    even_share,
    TOP: tl.constexpr,  # layers above the subtree
    LEVELS: tl.constexpr,  # layers of it
    ROWS: tl.constexpr,
    TOGETHER: tl.constexpr,  # rows that one thread takes
    MODE: tl.constexpr,
    CLASSES: tl.constexpr,  # where loops over classes are unrolled; else 0
    CLASS_BLOCK: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_NUMBERS_BIAS: tl.constexpr,
    HAS_SHARE: tl.constexpr,
    WITH_LOSS: tl.constexpr,
):
    """Binary trees: one program for each block of rows, subtree and member."""
    block, subtree, member = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    # A thread takes few rows and all nodes: then nothing moves between threads on the way down and up.
    rows = tl.max_contiguous(block * ROWS + tl.arange(0, ROWS), TOGETHER)
    inside = rows < batch
    z_of = logits + member * n_nodes * batch
    bias_of = bias + member * n_nodes
    if HAS_SHARE:
        arriving = tl.load(share + member * share_stride + rows, mask=inside, other=0.0)
    else:
        arriving = tl.where(inside, even_share, 0.0)
    p = arriving[:, None]
    for d in tl.static_range(TOP):
        node = (1 << d) - 1 + (subtree >> (TOP - d)) + tl.arange(0, 1)
        left, right = _sigmoids(_load_rows(z_of, bias_of, node, rows, inside, batch, HAS_BIAS))
        p = p * tl.where(((subtree >> (TOP - d - 1)) & 1) == 0, left, right)
    for d in tl.static_range(LEVELS):
        nodes = (1 << (TOP + d)) - 1 + (subtree << d) + tl.arange(0, 1 << d)
        left, right = _sigmoids(_load_rows(z_of, bias_of, nodes, rows, inside, batch, HAS_BIAS))
        p = tl.reshape(tl.join(p * left, p * right), [ROWS, 2 << d])
    leaves = (subtree << LEVELS) + tl.arange(0, 1 << LEVELS)
    predicts: tl.constexpr = MODE == PREDICT_CONSTANT or MODE == PREDICT_NUMBERS or MODE == BEST
    v = _at_leaves(
        p,
        leaves,
        leaves < n_leaves,
        rows,
        inside,
        subtree if predicts else block,
        member,
        n_leaves,
        batch,
        numbers,
        numbers_bias,
        numbers_gradient,
        numbers_bias_parts,
        target + member * target_stride,
        out,
        n_classes,
        MODE,
        CLASSES,
        CLASS_BLOCK,
        HAS_NUMBERS_BIAS,
    )
    if MODE != ARRIVE and not predicts:
        for d in tl.static_range(LEVELS - 1, -1, -1):
            nodes = (1 << (TOP + d)) - 1 + (subtree << d) + tl.arange(0, 1 << d)
            left, right = _sigmoids(_load_rows(z_of, bias_of, nodes, rows, inside, batch, HAS_BIAS))
            p_left, p_right = tl.split(tl.reshape(p, [ROWS, 1 << d, 2]))
            v_left, v_right = tl.split(tl.reshape(v, [ROWS, 1 << d, 2]))
            gradient = p_left * right * (v_left - v_right)
            position = logits_gradient + member * n_nodes * batch + nodes[None, :] * batch + rows[:, None]
            tl.store(position, gradient, mask=inside[:, None])
            if HAS_BIAS:
                first = (block * tl.num_programs(2) + member) * n_nodes
                tl.store(bias_parts + first + nodes, tl.sum(gradient, 0))
            v = left * v_left + right * v_right
            p = p_left + p_right
        expected = tl.sum(v, 1)  # of one column
        if TOP > 0:
            tl.store(roots + (member * tl.num_programs(1) + subtree) * batch + rows, expected, mask=inside)
        elif WITH_LOSS:
            tl.store(loss_parts + member * tl.num_programs(0) + block, tl.sum(arriving * expected, 0))


@triton.jit(do_not_specialize=SIZES)
def layered(
    logits,  # (members, logits, batch)
    bias,  # (members, logits)
    share,
    target,
    numbers,
    numbers_bias,
    logits_gradient,
    bias_parts,
    numbers_gradient,
    numbers_bias_parts,
    branching,  # (members, branches, batch), to work in
    arrivals,  # (members, nodes of all layers, batch), to work in
    values,  # likewise
    loss_parts,
    out,
    batch,
    depth,
    n_nodes,
    n_all,
    n_leaves,
    n_classes,
    share_stride,
    target_stride,
    even_share,
    WINDOW: tl.constexpr,
    STRIDE: tl.constexpr,
    ROWS: tl.constexpr,
    NODES: tl.constexpr,
    MODE: tl.constexpr,
    CLASSES: tl.constexpr,  # where loops over classes are unrolled; else 0
    CLASS_BLOCK: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_NUMBERS_BIAS: tl.constexpr,
    HAS_SHARE: tl.constexpr,
    WITH_LOSS: tl.constexpr,
):
    """Any window and stride: one program for each block of rows and member, layer by layer through cached memory."""
    block, member = tl.program_id(0), tl.program_id(2).to(tl.int64)
    rows = block * ROWS + tl.arange(0, ROWS)
    inside = rows < batch
    LOGITS: tl.constexpr = 1 if WINDOW == 2 else WINDOW  # of a node
    z_of = logits + member * n_nodes * LOGITS * batch + rows[:, None]
    bias_of = bias + member * n_nodes * LOGITS
    b_of = branching + member * n_nodes * WINDOW * batch + rows[:, None]
    p_of = arrivals + member * n_all * batch + rows[:, None]
    if HAS_SHARE:
        arriving = tl.load(share + member * share_stride + rows, mask=inside, other=0.0)
    else:
        arriving = tl.where(inside, even_share, 0.0)
    # Branching of all nodes.
    for start in range(0, n_nodes, NODES):
        nodes = start + tl.arange(0, NODES)
        mask = inside[:, None] & (nodes < n_nodes)[None, :]
        if WINDOW == 2:
            z = tl.load(z_of + nodes[None, :] * batch, mask=mask, other=0.0).to(tl.float32)
            if HAS_BIAS:
                z += tl.load(bias_of + nodes, mask=nodes < n_nodes, other=0.0)[None, :]
            left, right = _sigmoids(z)
            tl.store(b_of + (2 * nodes)[None, :] * batch, left, mask=mask)
            tl.store(b_of + (2 * nodes + 1)[None, :] * batch, right, mask=mask)
        else:
            top = tl.full([ROWS, NODES], float("-inf"), tl.float32)
            total = tl.zeros([ROWS, NODES], tl.float32)
            for j in range(WINDOW):
                z = tl.load(z_of + (nodes * WINDOW + j)[None, :] * batch, mask=mask, other=0.0).to(tl.float32)
                if HAS_BIAS:
                    z += tl.load(bias_of + nodes * WINDOW + j, mask=nodes < n_nodes, other=0.0)[None, :]
                higher = tl.maximum(top, z)
                total = total * tl.exp(top - higher) + tl.exp(z - higher)
                top = higher
            for j in range(WINDOW):
                z = tl.load(z_of + (nodes * WINDOW + j)[None, :] * batch, mask=mask, other=0.0).to(tl.float32)
                if HAS_BIAS:
                    z += tl.load(bias_of + nodes * WINDOW + j, mask=nodes < n_nodes, other=0.0)[None, :]
                tl.store(b_of + (nodes * WINDOW + j)[None, :] * batch, tl.exp(z - top) / total, mask=mask)
    tl.store(p_of, arriving[:, None], mask=inside[:, None])
    tl.debug_barrier()  # what one thread has written, others read
    # Down: each node gathers from its parents.
    above, width = 0, 1  # first node of the layer, and how many there are
    for _ in range(depth):
        below, width_below = above + width, (width - 1) * STRIDE + WINDOW
        for start in range(0, width_below, NODES):
            children = start + tl.arange(0, NODES)
            p = tl.zeros([ROWS, NODES], tl.float32)
            for j in tl.static_range(WINDOW):
                parents = (children - j) // STRIDE
                real = (children >= j) & ((children - j) % STRIDE == 0) & (parents < width)
                mask = inside[:, None] & real[None, :]
                flow = tl.load(p_of + (above + parents)[None, :] * batch, mask=mask, other=0.0)
                share_of = tl.load(b_of + ((above + parents) * WINDOW + j)[None, :] * batch, mask=mask, other=0.0)
                p += flow * share_of
            mask = inside[:, None] & (children < width_below)[None, :]
            tl.store(p_of + (below + children)[None, :] * batch, p, mask=mask)
        tl.debug_barrier()
        above, width = below, width_below
    # At the leaves, a block at a time.
    predicts: tl.constexpr = MODE == PREDICT_CONSTANT or MODE == PREDICT_NUMBERS or MODE == BEST
    v_of = values + member * n_all * batch + rows[:, None]
    for start in range(0, n_leaves, NODES):
        leaves = start + tl.arange(0, NODES)
        real = leaves < n_leaves
        mask = inside[:, None] & real[None, :]
        p = tl.load(p_of + (above + leaves)[None, :] * batch, mask=mask, other=0.0)
        v = _at_leaves(
            p,
            leaves,
            real,
            rows,
            inside,
            start // NODES if predicts else block,
            member,
            n_leaves,
            batch,
            numbers,
            numbers_bias,
            numbers_gradient,
            numbers_bias_parts,
            target + member * target_stride,
            out,
            n_classes,
            MODE,
            CLASSES,
            CLASS_BLOCK,
            HAS_NUMBERS_BIAS,
        )
        if MODE != ARRIVE and not predicts:
            tl.store(v_of + (above + leaves)[None, :] * batch, v, mask=mask)
    if MODE != ARRIVE and not predicts:
        tl.debug_barrier()
        # Up: each node asks its children.
        for _ in range(depth):
            below = above
            width = (width - WINDOW) // STRIDE + 1
            above = below - width
            for start in range(0, width, NODES):
                nodes = start + tl.arange(0, NODES)
                real = nodes < width
                mask = inside[:, None] & real[None, :]
                v = tl.zeros([ROWS, NODES], tl.float32)
                for j in tl.static_range(WINDOW):
                    share_of = tl.load(b_of + ((above + nodes) * WINDOW + j)[None, :] * batch, mask=mask, other=0.0)
                    child = tl.load(v_of + (below + nodes * STRIDE + j)[None, :] * batch, mask=mask, other=0.0)
                    v += share_of * child
                tl.store(v_of + (above + nodes)[None, :] * batch, v, mask=mask)
                p = tl.load(p_of + (above + nodes)[None, :] * batch, mask=mask, other=0.0)
                for j in tl.static_range(LOGITS):
                    share_of = tl.load(b_of + ((above + nodes) * WINDOW + j)[None, :] * batch, mask=mask, other=0.0)
                    child = tl.load(v_of + (below + nodes * STRIDE + j)[None, :] * batch, mask=mask, other=0.0)
                    gradient = p * share_of * (child - v)
                    row = member * n_nodes * LOGITS + (above + nodes) * LOGITS + j
                    tl.store(logits_gradient + row[None, :] * batch + rows[:, None], gradient, mask=mask)
                    if HAS_BIAS:
                        first = block.to(tl.int64) * tl.num_programs(2) * n_nodes * LOGITS
                        tl.store(bias_parts + first + row, tl.sum(gradient, 0), mask=real)
            tl.debug_barrier()
        if WITH_LOSS:
            v = tl.load(v_of, mask=inside[:, None], other=0.0)
            tl.store(loss_parts + member * tl.num_programs(0) + block, tl.sum(tl.sum(v, 1) * arriving, 0))


@triton.jit(do_not_specialize=SIZES)
def finish(
    bias_parts,  # (blocks, members * nodes)
    bias_gradient,  # (members * nodes)
    leaf_parts,  # (blocks, members * leaves, classes): arrived mass, or gradients of biases
    numbers,  # (members * leaves, classes)
    leaf_gradient,  # (members * leaves, classes)
    loss_parts,  # (members, blocks)
    loss,  # (members,)
    n_blocks,
    n_biases,
    n_leaves,  # of all members
    bias_programs,
    leaf_programs,
    n_classes,
    CONSTANT_LEAVES: tl.constexpr,
    CLASS_BLOCK: tl.constexpr,
    SIZE: tl.constexpr,
    LEAVES: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """Adds up what the programs of one pass found, always in the same order."""
    program = tl.program_id(0)
    blocks = tl.arange(0, BLOCKS)
    if program < bias_programs:
        i = program * SIZE + tl.arange(0, SIZE)
        bias_total = tl.zeros([SIZE], tl.float32)
        for start in range(0, n_blocks, BLOCKS):
            k = start + blocks
            some = tl.load(
                bias_parts + k[:, None].to(tl.int64) * n_biases + i[None, :],
                mask=(k < n_blocks)[:, None] & (i < n_biases)[None, :],
                other=0.0,
            )
            bias_total += tl.sum(some, 0)
        tl.store(bias_gradient + i, bias_total, mask=i < n_biases)
    elif program < bias_programs + leaf_programs:
        leaves = (program - bias_programs) * LEAVES + tl.arange(0, LEAVES)
        classes = tl.arange(0, CLASS_BLOCK)
        mask = (leaves < n_leaves)[:, None] & (classes < n_classes)[None, :]
        position = leaves[:, None] * n_classes + classes[None, :]
        leaf_total = tl.zeros([LEAVES, CLASS_BLOCK], tl.float32)
        for start in range(0, n_blocks, BLOCKS):
            k = start + blocks
            some_leaves = tl.load(
                leaf_parts + k[:, None, None].to(tl.int64) * n_leaves * n_classes + position[None, :, :],
                mask=(k < n_blocks)[:, None, None] & mask[None, :, :],
                other=0.0,
            )
            leaf_total += tl.sum(some_leaves, 0)
        if CONSTANT_LEAVES:  # of mass(c) * (log sum exp - number(c)), summed over c
            logit = tl.load(numbers + position, mask=mask, other=float("-inf")).to(tl.float32)
            logit = tl.where((leaves < n_leaves)[:, None], logit, 0.0)
            exponents = tl.exp(logit - tl.max(logit, 1)[:, None])
            softmax = exponents / tl.sum(exponents, 1)[:, None]
            leaf_total = softmax * tl.sum(leaf_total, 1)[:, None] - leaf_total
        tl.store(leaf_gradient + position, leaf_total, mask=mask)
    else:
        member = program - bias_programs - leaf_programs
        loss_total = tl.zeros([BLOCKS], tl.float32)
        for start in range(0, n_blocks, BLOCKS):
            k = start + blocks
            loss_total += tl.load(loss_parts + member * n_blocks + k, mask=k < n_blocks, other=0.0)
        tl.store(loss + member, tl.sum(loss_total, 0))


@triton.jit(do_not_specialize=SIZES)
def pick(
    largest,  # (parts, members, batch): the largest arrival of each part of the tree
    leaf,  # (parts, members, batch): its leaf
    numbers,  # (members, leaves, classes, batch or 1)
    numbers_bias,  # (members, leaves, classes)
    out,  # (members, batch, classes)
    n_parts,
    n_leaves,
    batch,
    n_classes,
    CONSTANT_LEAVES: tl.constexpr,
    HAS_NUMBERS_BIAS: tl.constexpr,
    CLASS_BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Write the class probabilities at the leaf of the largest arrival."""
    member = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = rows < batch
    best = tl.full([ROWS], -1.0, tl.float32)
    chosen = tl.zeros([ROWS], tl.int64)
    for part in range(n_parts):
        position = (part * tl.num_programs(1) + member) * batch + rows
        p = tl.load(largest + position, mask=inside, other=-1.0)
        u = tl.load(leaf + position, mask=inside, other=0)
        chosen = tl.where(p > best, u, chosen)
        best = tl.maximum(p, best)
    classes = tl.arange(0, CLASS_BLOCK)
    mask = inside[:, None] & (classes < n_classes)[None, :]
    position = (member * n_leaves + chosen[:, None]) * n_classes + classes[None, :]
    if CONSTANT_LEAVES:
        logit = tl.load(numbers + position, mask=mask, other=float("-inf")).to(tl.float32)
    else:
        logit = tl.load(numbers + position * batch + rows[:, None], mask=mask, other=float("-inf")).to(tl.float32)
        if HAS_NUMBERS_BIAS:
            logit += tl.load(numbers_bias + position, mask=mask, other=0.0)
    logit = tl.where(inside[:, None], logit, 0.0)
    exponents = tl.exp(logit - tl.max(logit, 1)[:, None])
    softmax = exponents / tl.sum(exponents, 1)[:, None]
    tl.store(out + (member * batch + rows[:, None]) * n_classes + classes[None, :], softmax, mask=mask)
