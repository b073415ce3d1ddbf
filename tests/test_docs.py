"""What the pages promise: links lead to files, names exist where they are said to be, and code runs as pasted.

The convention of code spans in docs/:

- ``tartree.ops.tconv`` is a name that can be imported, with attributes of classes (``tartree.Structure.depth``) and of
  their instances where a class declares them or takes them as a parameter;
- ``tartree.nn.Tree.build(share, dropout)`` says that the callable has these parameters;
- ``tartree.zoo.PRESETS["tart-a"]`` says that the mapping has this key;
- ``tests/test_structure.py::test_frozen`` is a test;
- a span that begins with a folder of the repository, such as ``src/tartree/losses.py``, is a file or a folder.

A block fenced as ``python`` is run; ``python no-run`` is not.
"""

import ast
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.suggestions import parse

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS) if path.exists()]
PAPER = ROOT / "docs" / "paper-to-code.md"

FENCE = re.compile(r"^ *```(?P<info>[^\n`]*)\n(?P<body>.*?)^ *``` *$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\(<?([^()\s>]+)>?(?: \"[^\"]*\")?\)|^\[[^\]]+\]: (\S+)|(?:src|href)=\"([^\"]+)\"", re.MULTILINE)
NAME = re.compile(r"(tartree(?:\.\w+)+)(?:\((\w+(?:, \w+)*)\)|\[\"([^\"]+)\"\])?")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
FOLDERS = ("src/", "tests/", "docs/", "benchmarks/", "examples/")


def page_name(path):
    return path.relative_to(ROOT).as_posix()


def prose(path):
    """A page without its fenced blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def spans(text):
    return [match[1] for match in SPAN.finditer(text)]


def linked_files(path, text):
    """Where the relative links of a page, or of a part of it, lead."""
    targets = ["".join(groups) for groups in LINK.findall(SPAN.sub("code", text))]
    local = [target.split("#")[0] for target in targets if not re.match(r"[a-z]+:", target)]
    return [(path.parent / unquote(target)).resolve() for target in local if target]


def find(name):
    """What a dotted name means; None for an attribute that only instances have."""
    try:
        return pkgutil.resolve_name(name)
    except AttributeError:
        owner, _, attribute = name.rpartition(".")
        cls = find(owner)
        if isinstance(cls, type):
            declared = {field for base in cls.__mro__ for field in inspect.get_annotations(base)}
            if attribute in declared | set(inspect.signature(cls).parameters):
                return None
        raise


def home(name):
    """The file where a name is written: that of a function or class, or that of whatever holds a value."""
    for candidate in (name, name.rpartition(".")[0]):
        try:
            return Path(inspect.getsourcefile(inspect.unwrap(find(candidate)))).resolve()
        except TypeError:  # a value
            continue
    raise AssertionError(f"{name} has no file")


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_relative_links_lead_to_files(path):
    for target in linked_files(path, prose(path)):
        assert target.is_relative_to(ROOT), f"{target} is outside the repository"
        assert target.exists(), f"{target.relative_to(ROOT)} does not exist"


@pytest.mark.parametrize("path", DOCS, ids=page_name)
def test_names_in_code_spans_exist(path):
    for span in spans(prose(path)):
        if match := NAME.match(span):
            name, parameters, key = match.groups()
            try:
                thing = find(name)
            except (AttributeError, ImportError) as error:
                pytest.fail(f"`{span}`: {error}")
            if parameters:
                missing = set(parameters.split(", ")) - set(inspect.signature(thing).parameters)
                assert not missing, f"`{span}`: {name} has no parameter {missing}"
            if key:
                assert key in thing, f"`{span}`: there is no such key"
        elif match := TEST.fullmatch(span):
            file, function = match.groups()
            assert (ROOT / file).is_file(), f"`{span}`: no such file"
            defined = [node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if hasattr(node, "name")]
            assert function in defined, f"`{span}`: no such test"
        elif span.startswith(FOLDERS) and " " not in span:
            assert list(ROOT.glob(span)), f"`{span}`: no such file"


def dotted_names():
    """Every dotted name of the package on the pages and in docstrings, with the files that write it."""
    pattern = re.compile(r"(?<![\w/.-])tartree(?:\.[A-Za-z_]\w*)+")
    texts = [(path, path.read_text(encoding="utf-8")) for path in (*PAGES, *sorted((ROOT / "src").rglob("*.md")))]
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                texts.append((path, ast.get_docstring(node) or ""))
    names = {}
    for path, text in texts:
        for match in pattern.finditer(text):
            names.setdefault(match[0], set()).add(page_name(path))
    return names


# Between two names the package is forgotten, so that none profits from what another one imported.
RESOLVE = """
import importlib, json, sys
names, missing = json.load(sys.stdin), {}
for name in names:
    for module in [module for module in sys.modules if module.split(".")[0] == "tartree"]:
        del sys.modules[module]
    thing, _, path = importlib.import_module("tartree"), *name.partition(".")[1:]
    for attribute in path.split("."):
        if not hasattr(thing, attribute):
            missing[name] = [repr(thing), attribute, isinstance(thing, type)]
            break
        thing = getattr(thing, attribute)
json.dump(missing, sys.stdout)
"""


def test_dotted_names_resolve_after_a_plain_import():
    """A reader pastes `tartree.datasets.load_uci` below `import tartree`, with nothing else imported."""
    names = dotted_names()
    assert len(names) > 80
    assert "README.md" in names["tartree.datasets.load_uci"]
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE], input=json.dumps(sorted(names)), capture_output=True, text=True, check=True
    )
    missing = json.loads(done.stdout)
    for name, (_, _, is_class) in list(missing.items()):
        if is_class:  # an attribute that instances have
            find(name)
            del missing[name]
    assert not missing, {name: names[name] for name in missing}


def test_the_paper_page_links_the_file_of_each_name():
    rows = [line for line in prose(PAPER).splitlines() if line.startswith("|")]
    assert len(rows) > 50
    for row in rows:
        files = linked_files(PAPER, row)
        for span in spans(row):
            if match := NAME.match(span):
                assert home(match[1]) in files, f"{match[1]} lives in {home(match[1])}, which its row does not link"
            elif match := TEST.fullmatch(span):
                assert ROOT / match[1] in files, f"{span}: its row does not link {match[1]}"
            elif span.startswith(FOLDERS):
                assert (ROOT / span).resolve() in files, f"{span} is not a link in its row"


def test_the_paper_page_is_complete():
    counts = {"Definition": 2, "Lemma": 3, "Eq.": 6, "Algorithm": 2, "Table": 9, "Figure": 5}
    text = prose(PAPER)
    for kind, count in counts.items():
        for number in range(1, count + 1):
            assert re.search(rf"^\| {kind} {number}\b", text, re.MULTILINE), f"{kind} {number} has no row"


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_commands_can_be_parsed(path):
    """Those of shell blocks, and code spans with more than the name of a command."""
    text = path.read_text(encoding="utf-8")
    shells = [match["body"] for match in FENCE.finditer(text) if match["info"].split()[:1] in (["sh"], ["bash"], [])]
    lines = [line.strip().removeprefix("$ ") for body in shells for line in body.splitlines()]
    for command in [*lines, *spans(prose(path))]:
        if re.match(r"tartree [a-z]+ \S", command):
            parse(command)


def blocks(path):
    """The Python blocks of a page that are meant to run, each behind as many empty lines as stand above it."""
    text = path.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        info = match["info"].split()
        if info[:1] == ["python"] and "no-run" not in info:
            yield "\n" * text.count("\n", 0, match.start("body")) + textwrap.dedent(match["body"])


@pytest.mark.parametrize("path", [path for path in PAGES if any(blocks(path))], ids=page_name)
def test_python_blocks_run_as_pasted(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks(path):
        exec(compile(block, str(path), "exec"), namespace)


def test_figures_in_the_readme_are_those_of_the_benchmarks():
    tables = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("|")]
    folds = (ROOT / "docs/benchmarks/accuracy.md").read_text().splitlines()
    study = (ROOT / "docs/choosing-a-tree.md").read_text().splitlines()
    assert len(tables) == 6 + 14
    assert set(tables[:6]) <= set(folds)
    assert set(tables[6:]) <= set(study)
    rows = json.loads((ROOT / "docs/benchmarks/speed-gpu.json").read_text())["sections"]["table"]["rows"]
    step = next(row["step"] for row in rows if row["work"]["depth"] == 12)
    text = " ".join((ROOT / "README.md").read_text().split())
    assert f"rows {step['ours']:.2f} ms, where the paper's code takes {step['leesael/TART']:.1f} and other" in text
    others = [ms for name, ms in step.items() if name.lower().replace("-", "").endswith("softdecisiontree")]
    assert len(others) == 3
    assert min(others) > 1000  # "take seconds"
