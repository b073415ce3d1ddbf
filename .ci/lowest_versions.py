"""Print the lowest version of every package that pyproject.toml names, as constraints for pip.

torch is the exception: constraints.txt says which, as for every other check. An older one would bring gigabytes of
packages for GPUs, so its lower bound is not tried.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    for requirement in [*project["dependencies"], *(item for extra in extras for item in extra)]:
        name, bound = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?(?:>=([\d.]+))?(?:; .*)?", requirement).groups()
        if name == "torch":
            print(re.search(r"^torch==.*", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[0])
        elif name != project["name"]:
            print(f"{name}=={bound}")


main()
