"""Write the list of modules in docs/architecture.md from the first lines of their docstrings."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
SOURCE = ROOT / "src" / "tartree"
BEGIN, END = "<!-- modules: begin -->\n", "<!-- modules: end -->\n"


def module_list() -> str:
    """Return the list in Markdown: a line for each module, below a line for its folder."""
    lines = []
    for path in sorted(SOURCE.rglob("*.py"), key=_order):
        parts = path.relative_to(SOURCE).parts
        is_folder = path.name == "__init__.py"
        if is_folder and len(parts) == 1:
            continue
        name = f"**{parts[-2]}/**" if is_folder else f"`{path.name}`"
        indent = "  " * (len(parts) - 1 - is_folder)
        lines.append(f"{indent}- {name} {_summary(path)}\n")
    return "".join(lines)


def _order(path: Path) -> tuple[tuple[bool, str], ...]:
    """Sort the files of a folder before its folders, and its `__init__` before both."""
    *folders, name = path.relative_to(SOURCE).parts
    return *((True, folder) for folder in folders), (False, "" if name == "__init__.py" else name)


def _summary(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not docstring:
        raise ValueError(f"{path} must have a docstring, whose first line says what it holds")
    return " ".join(docstring.partition("\n\n")[0].split())


def with_modules(page: str) -> str:
    """Return the page with the list of modules as they are."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{module_list()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_modules(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
