"""Conventions of the source that no other tool checks: names of files, private members, models in signatures."""

import ast
import re
from collections import Counter
from pathlib import Path

import tartree

SOURCE = Path(tartree.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = Path(__file__).parent
#: Private members of other libraries that have no public form.
FOREIGN = {
    *("_modules", "_parameters", "_buffers", "_version", "_forward_hooks", "_forward_pre_hooks"),  # torch
    *("_raw_predict_init", "_predictors", "_baseline_prediction", "_preprocessor"),  # scikit-learn's ensembles
}
#: Names of things that end like activities.
NOUNS = {"branching"}
FITTED = {"model", "estimator", "fitted", "classifier", "regressor", "search"}


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def private_definitions(tree):
    """Yield the private names that a module defines: functions, classes, variables and attributes of `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            yield node.attr


def is_self(node):
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def private_uses(tree):
    """Yield the private names that a module takes from something else than `self`, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_self(node.value):
            yield node.attr, node.lineno
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tartree"):
            yield from ((alias.name, node.lineno) for alias in node.names if is_private(alias.name))


def test_no_private_member_of_another_room_is_used():
    trees = {path: parsed(path) for path in FILES}
    defined = {}
    for path, tree in trees.items():
        defined.setdefault(room(path), set()).update(filter(is_private, private_definitions(tree)))
    uses = [
        f"{path.relative_to(SOURCE)}:{line} {name}"
        for path, tree in trees.items()
        for name, line in private_uses(tree)
        if name not in defined[room(path)] | FOREIGN
    ]
    assert not uses, uses


def test_models_in_signatures_have_a_type():
    untyped = [
        f"{path.relative_to(SOURCE)}:{argument.lineno} {node.name}({argument.arg})"
        for path in FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if argument.arg in FITTED and (argument.annotation is None or ast.unparse(argument.annotation) == "Any")
    ]
    assert not untyped, untyped


def test_file_names_are_unique_nouns():
    names = Counter(path.stem for path in FILES if not path.stem.startswith("__"))
    assert not [name for name, count in names.items() if count > 1]
    gerunds = {name for name in names if re.search(r"(^|_)\w+ing$", name)} - NOUNS
    assert not gerunds


def test_modules_of_tests_are_named_after_what_they_test():
    """`tests/nn/test_tree.py` tests `nn/tree.py`; `test_tree_graphs.py` may test one side of it.

    A `test_contract.py` tests what holds for all models of a room.
    """
    wrong = []
    for path in sorted(TESTS.rglob("test_*.py")):
        tested = path.relative_to(TESTS)
        if len(tested.parts) == 1 or tested.parts[0] == "benchmarks" or path.stem == "test_contract":
            continue
        folder = SOURCE / tested.parent
        modules = {file.stem for file in folder.iterdir() if file.is_dir() or file.suffix == ".py"}
        modules = (modules - {"__init__", "__pycache__"}) | {folder.name}
        if not any(re.match(rf"test_{name}(_|$)", path.stem) for name in modules):
            wrong.append(tested.as_posix())
    assert not wrong, wrong
