"""A reader of `export_text` that knows nothing of the model: it follows the text, row by row."""

import re

import numpy as np
import pandas as pd

NUMBER = r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)"
SHARE = re.compile(r"  \([<>]?[\d.]+%( arrive)?\)$")


class FollowedText:
    """The text of one tree, ready to be followed.

    It is told the levels that training has seen, by column, and the columns with missing values.
    """

    def __init__(self, text, columns, known, gaps):
        self.known, self.gaps = known, gaps
        self.columns = sorted(columns, key=len, reverse=True)
        lines = text.rstrip("\n").split("\n")
        first, last = (f(k for k, line in enumerate(lines) if line.startswith("|")) for f in (min, max))
        self.notes = "\n".join(lines[last + 1 :])
        self.reach = float(m[1]) / 100 if (m := re.search(r"r is ([\d.]+)% of its range", self.notes)) else None
        typical = re.search(r"^A missing value counts as: (.*)\.$", self.notes, re.MULTILINE)
        self.typical = {}
        for entry in typical[1].split(", ") if typical else []:
            name = self.column_of(entry)
            self.typical[name] = entry[len(name) + 1 :]
        is_complete = not re.search(r"^[| ]*and \d+ smaller terms?$", text, re.MULTILINE)
        assert is_complete, "all terms must be written out"
        self.model = self.read_functions(lines[:first])
        self.root, rest = self.read_node(lines[first : last + 1], 0)
        assert not rest

    def column_of(self, text):
        return next(name for name in self.columns if text.startswith(name))

    def read_functions(self, lines):
        """Return constants and effects by the name of the function."""
        functions = {}
        for line in lines:
            line = line.lstrip("| ")
            if lead := re.fullmatch(
                rf"(?:all rows: )?(.*?)(?: = | changes by | changes)({NUMBER})?(?:, plus| by)?", line
            ):
                current = functions.setdefault(lead[1], [float(lead[2] or 0), []])
                continue
            name = self.column_of(line)
            assert line[len(name)] == ":", line
            current[1].append((name, self.read_effect(line[len(name) + 2 :])))
        return functions

    def read_effect(self, text):
        effect = {"points": [], "levels": {}, "missing": None, "far": None, "slope": None}
        if missing := re.search(rf"(?:^|; )({NUMBER}) missing$", text):
            effect["missing"] = float(missing[1])
            text = text[: missing.start()]
        if far := re.search(rf" \(far below ({NUMBER}), far above ({NUMBER})\)$", text):
            effect["far"] = float(far[1]), float(far[2])
            text = text[: far.start()]
        if slope := re.search(rf" \(slope ({NUMBER}) beyond\)$", text):
            effect["slope"] = float(slope[1])
            text = text[: slope.start()]
        for entry in text.split(", ") if text else []:
            amount, rest = entry.split(" ", 1)
            if rest.startswith("at "):
                effect["points"].append((number_of(rest[3:]), float(amount)))
            else:
                effect["levels"][rest.strip('"')] = float(amount)
        return effect

    def read_node(self, lines, depth):
        """Return (functions, branches), of which a leaf has none, and the lines that follow."""
        indent = "|   " * depth
        changes = []
        while lines and not lines[0][len(indent) :].startswith("|--- "):
            changes.append(lines.pop(0))
        start = f"{indent}|--- "
        assert lines[0].startswith(start), lines[0]
        if lines[0].startswith(f"{start}leaf "):
            lines.pop(0)
            while lines and "|--- " not in lines[0]:
                changes.append(lines.pop(0))
            return (self.read_functions(changes), []), lines
        branches = []
        while lines and lines[0].startswith(start):
            condition = SHARE.sub("", lines.pop(0)[len(start) :])
            node, lines = self.read_node(lines, depth + 1)
            branches.append((condition, node))
        return (self.read_functions(changes), branches), lines

    # Following

    def sums(self, X):
        """Return the sums along the paths of the rows, by name of the function."""
        rows = X.to_dict("records")
        return pd.DataFrame([self.sums_of(row) for row in rows])

    def sums_of(self, row):
        totals = {}
        node = (self.model, [("always", self.root)])
        while True:
            functions, branches = node
            for name, (constant, effects) in functions.items():
                totals[name] = totals.get(name, 0.0) + constant + sum(self.amount(row[c], c, e) for c, e in effects)
            if not branches:
                return totals
            holds = [condition == "otherwise" or self.holds(condition, row) for condition, _ in branches]
            assert any(holds), (branches[0][0], branches[-1][0], row)
            assert branches[-1][0] == "otherwise" or sum(holds) == 1, (branches[0][0], branches[-1][0], row)
            node = branches[holds.index(True)][1]

    def value(self, value, name):
        """Return a value, None if it is missing, and what it counts as then if the notes say so."""
        if value is None or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
            return self.typical.get(name)
        return value

    def amount(self, value, name, effect):
        value = self.value(value, name)
        if value is None:
            if effect["missing"] is not None:
                return effect["missing"]
            return effect["levels"].get("another", 0.0)
        levels = effect["levels"]
        if levels:
            return levels.get(str(value), 0.0 if self.is_known(str(value), name) else levels.get("another", 0.0))
        if not effect["points"]:
            return 0.0
        x, parts = map(np.array, zip(*effect["points"], strict=True))
        value = number_of(value)
        side = -1 if value > x[-1] else 0
        distance = max(value - x[-1], x[0] - value)
        if distance <= 0 or (effect["far"] is None and effect["slope"] is None):
            return float(np.interp(value, x, parts))
        if effect["slope"] is not None:
            return parts[side] + effect["slope"] * (value - x[side])
        share = distance / (distance + self.reach * (x[-1] - x[0]))
        return parts[side] + share * (effect["far"][side] - parts[side])

    def is_known(self, level, name):
        return level in self.known.get(name, ())

    def holds(self, condition, row):
        if condition in ("always", "never"):
            return condition == "always"
        if condition.startswith("not (") and condition.endswith(")"):
            return not self.holds(condition[5:-1], row)
        if any(re.match(rf"{re.escape(name)} \({NUMBER} .*\) > \S+$", condition) for name in self.columns):
            return self.sum_holds(condition, row)
        return any(self.atom_holds(atom, row) for atom in condition.split(" or "))

    def sum_holds(self, condition, row):
        text, limit = condition.rsplit(" > ", 1)
        total = 0.0
        for part in re.split(r"(?<=\)) \+ ", text):
            name = self.column_of(part)
            total += self.amount(row[name], name, self.read_effect(part[len(name) + 2 : -1]))
        return total > float(limit)

    def atom_holds(self, atom, row):
        if between := re.fullmatch(r"(\S+) (<=?) (.*) (<=?) (\S+)", atom):
            low, first, name, second, high = between.groups()
            value = self.value(row[name], name)
            return value is not None and compare(low, first, value) and compare(value, second, high)
        name = self.column_of(atom)
        rest = atom[len(name) + 1 :]
        value = self.value(row[name], name)
        if rest == "is missing":
            return value is None
        if not rest:
            return str(value) == "True"
        if rest.startswith(("in {", "not in {")):
            levels = re.search(r"\{(.*)\}", rest)[1].split(", ")
            is_unseen = value is not None and not self.is_known(str(value), name)
            is_listed = "missing" in levels if value is None else str(value) in levels
            if is_unseen or (value is None and "missing" not in levels and self.has_no_gaps(name)):
                is_listed = "another" in levels
            return is_listed != rest.startswith("not")
        sign, limit = rest.split(" ", 1)
        if sign == "=":
            return str(value) == limit
        return value is not None and compare(value, sign, limit)

    def has_no_gaps(self, name):
        return name not in self.gaps


def compare(left, sign, right):
    left, right = number_of(left), number_of(right)
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[sign]


def number_of(value):
    """Return a number, a date in seconds."""
    if isinstance(value, str):
        value = value.removesuffix(" s")
    try:
        return float(value)
    except (TypeError, ValueError):
        return pd.Timestamp(value).timestamp()


def follow(text, X):
    """Return the sums of the rows of a table that is followed through a text; levels of X are those seen."""
    known = {name: set(map(str, X[name].dropna().unique())) for name in X.columns}
    gaps = {name for name in X.columns if X[name].isna().any()}
    return FollowedText(text, [str(name) for name in X.columns], known, gaps).sums(X)
