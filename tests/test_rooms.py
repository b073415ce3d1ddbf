"""Who may import whom: docs/architecture.md, as a test."""

import ast
from pathlib import Path

import tartree

SOURCE = Path(tartree.__file__).parent
EVERYWHERE = {"checks"}  # imports nothing of the package
#: Rooms in order: each imports only from those before it. Nobody imports `datasets` but the command line.
ORDER = (
    *("checks", "structure", "ops", "nn", "losses", "training", "table", "persist"),
    *("model", "explain", "estimators", "zoo", "search", "cluster", "datasets", "cli"),
)
ALONE = {"checks", "structure", "persist", "table", "datasets"}  # import nothing of the package but checks
PUBLIC = {"Structure", "StructureSearch", "TableEncoder", "TartClassifier", "TartRegressor", "load", "__version__"}


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "tartree":
            yield from (alias.name for alias in node.names if alias.name not in PUBLIC)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tartree."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("tartree."))


def test_a_room_imports_only_from_its_left():
    rooms = {path.stem if path.is_file() else path.name for path in SOURCE.iterdir()} - {
        "__init__",
        "__pycache__",
        "py",
    }
    assert rooms == set(ORDER)
    for room in rooms:
        before = {"checks"} if room in ALONE else set(ORDER[: ORDER.index(room)]) - ({"datasets"} - {room})
        before |= {"datasets", "cluster"} if room == "cli" else set()
        files = [SOURCE / f"{room}.py"] if (SOURCE / f"{room}.py").exists() else list((SOURCE / room).rglob("*.py"))
        for path in files:
            wrong = set(imported_rooms(path)) - before - {room}
            assert not wrong, f"{path.relative_to(SOURCE)} may not import {wrong}"
