"""docs/architecture.md agrees with the source: the list of modules, and the lives file by file."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

import tartree
from tartree import StructureSearch, TartClassifier

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
SOURCE = Path(tartree.__file__).parent
X, y = load_iris(return_X_y=True, as_frame=True)


def classifier():
    """Return the default model, a readable tree."""
    return TartClassifier(epochs=2, device="cpu", random_state=0)


def search():
    return StructureSearch(classifier(), {"depth": [0, 1]}, random_state=0)


#: What each life on the page is a trace of: made ready, then run.
LIVES = {
    "fit": lambda: classifier().fit,
    "prediction": lambda: (lambda model: lambda X, y: model.predict_proba(X))(classifier().fit(X, y)),
    "explanation": lambda: (lambda model: lambda X, y: model.explain(X[:2]))(classifier().fit(X, y)),
    "search": lambda: search().fit,
}


def test_every_module_is_listed_with_its_line():
    """If not: ``python docs/module_map.py``."""
    spec = importlib.util.spec_from_file_location("module_map", ROOT / "docs" / "module_map.py")
    module_map = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module_map)
    page = PAGE.read_text(encoding="utf-8")
    assert module_map.with_modules(page) == page


def listed_files(life):
    """Return the files that the page names in the numbered steps of a life, in order."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## The life of one {life}\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d+\. .*?(?=^\d+\. |\Z)", section, re.MULTILINE | re.DOTALL)
    return list(dict.fromkeys(name for step in steps for name in re.findall(r"`([\w/]+\.py)`", step)))


def traced_files(run):
    """Return the files of the package that a call enters, in the order of their first functions."""
    files = {}

    def note(frame, event, argument):
        if event == "call":
            files.setdefault(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        run(X, y)
    finally:
        sys.setprofile(None)
    prefix = f"{SOURCE}/"
    return [name.removeprefix(prefix) for name in files if name.startswith(prefix)]


@pytest.mark.parametrize("life", LIVES)
def test_a_life_is_what_a_trace_shows(life):
    run = LIVES[life]()
    traced, listed = traced_files(run), listed_files(life)
    assert len(listed) > 5
    assert set(listed) <= set(traced), f"never entered: {set(listed) - set(traced)}"
    assert listed == sorted(listed, key=traced.index)
