"""One HTML file from the template, the styles, the scripts and the data, without external resources."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from textwrap import indent
from typing import Any

from tartree.nn import ACTIVATIONS
from tartree.nn.outputs import OUTPUTS

IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=function |const |class )", re.MULTILINE)
SLOT = re.compile(r"\{\{([a-z-]+)\}\}")
STYLES = ("page.css", "tree.css")
FIRST_SCRIPT = "main.js"
RECORDS = "records.js"  # generated


def read(name: str) -> str:
    """Return the text of a file in this folder, or the script of the records of branching functions and outputs."""
    if name == RECORDS:
        return _records_script()
    return files("tartree.explain.page").joinpath(name).read_text(encoding="utf-8")


def _records_script() -> str:
    """Return the branching functions and the outputs in JavaScript, by name."""
    parts = ['import { normalBelow } from "./mixture.js";\n']
    for name, records in (("ACTIVATIONS", ACTIVATIONS), ("OUTPUTS", OUTPUTS)):
        entries = "".join(indent(f"{key}: {record.javascript},\n", "  ") for key, record in records.items())
        parts.append(f"export const {name} = {{\n{entries}}};\n")
    return "\n".join(parts)


def bundle_scripts(first: str = FIRST_SCRIPT) -> str:
    """Return a module and its imports as one script, each after its imports."""
    done: dict[str, str] = {}

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"scripts must not import each other in a circle, got {' -> '.join((*above, name))}")
        if name in done:
            return
        text = read(name)
        for needed in IMPORT.findall(text):
            add(needed, (*above, name))
        done[name] = EXPORT.sub("", IMPORT.sub("", text)).strip()

    add(first, ())
    return "\n\n".join(done.values()) + "\n"


def plain_json(data: Any) -> str:
    """Return JSON for a script element: nothing in it ends the element or begins a comment."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    # A lone surrogate has no UTF-8.
    return re.sub(r"[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def make_page(title: str, data: dict[str, Any]) -> str:
    """Return the page. Its policy forbids every request, and every script and style that is not in it."""
    script = bundle_scripts()
    style = "\n".join(read(name) for name in STYLES)
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "title": html.escape(title),
        "policy": html.escape(policy),
        "style": style,
        "script": script,
        "data": plain_json(data),
    }
    return SLOT.sub(lambda match: parts[match[1]], read("page.html"))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
