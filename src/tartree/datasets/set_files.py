"""Files of a set: parse those of one folder, as bytes, into a UciSet."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.datasets.oddities import find_oddities
from tartree.datasets.split_lines import N_SPLITS, parse_splits
from tartree.datasets.uci_set import Split, UciSet

LABEL = "clase"
FOLDS_FILE = "conxuntos_kfold.dat"
TUNING_FILE = "conxuntos.dat"
LONGEST_MESSAGE = 200  # Arrow quotes whole lines


def parse_set(name: str, files: Mapping[str, bytes]) -> UciSet:
    """Return a set from its files by name, or raise a ValueError about what is wrong with it."""
    settings = _parse_settings(name, files)
    tables = [_parse_table(file, files[file]) for file in _data_files(settings, files)]
    columns, X, _ = tables[0]
    if len(tables) == 2 and tables[1][1].shape[1] != X.shape[1]:
        raise ValueError(f"train and test must have the same features, got {X.shape[1]} and {tables[1][1].shape[1]}")
    n_train, notes = len(X), _compare_counts(settings, tables)
    X = np.concatenate([features for _, features, _ in tables])
    labels, y = _code([text for _, _, texts in tables for text in texts])
    if len(labels) != int(settings.get("n_clases", len(labels))):
        notes.append(f"{len(labels)} classes in the data, {settings['n_clases']} in {name}.txt")
    fixed_test = len(tables) == 2
    splits = fixed_splits(n_train, len(X)) if fixed_test else _parse_folds(files, n_train)
    tuning = None
    if TUNING_FILE in files:
        try:
            [tuning] = parse_splits(TUNING_FILE, files[TUNING_FILE], 1, n_train)
        except ValueError as error:  # the four splits, which scores use, are not affected
            notes.append(f"no tuning split: {error}")
    notes += find_oddities(name, X, y, splits, fixed_test)
    return UciSet(name, X, y, labels, columns, splits, tuning, fixed_test, tuple(notes))


def fixed_splits(n_train: int, n_rows: int) -> tuple[Split, ...]:
    """Return the same split four times: the first rows to train on, the rest to test on."""
    return ((np.arange(n_train), np.arange(n_train, n_rows)),) * N_SPLITS


def _parse_folds(files: Mapping[str, bytes], n_rows: int) -> tuple[Split, ...]:
    if FOLDS_FILE not in files:
        raise ValueError(f"a set of one file must have its splits in {FOLDS_FILE}, which is missing")
    return parse_splits(FOLDS_FILE, files[FOLDS_FILE], N_SPLITS, n_rows)


def _parse_settings(name: str, files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the lines `key= value` of NAME.txt, with numbers checked."""
    if f"{name}.txt" not in files:
        raise ValueError(f"{name}.txt, which lists the data files, is missing")
    lines = files[f"{name}.txt"].decode("utf-8", "replace").splitlines()
    pairs = (line.partition("=") for line in lines if "=" in line)
    settings = {key.strip(): value.strip() for key, _, value in pairs}
    for key, value in settings.items():
        if key.startswith("n_") and not (value.isdecimal() and len(value) < 10):
            raise ValueError(f"{key} in {name}.txt must be a whole number, got {value[:40]!r}")
    return settings


def _data_files(settings: Mapping[str, str], files: Mapping[str, bytes]) -> list[str]:
    count = settings.get("n_arquivos")
    if count not in ("1", "2"):
        raise ValueError(f"n_arquivos must be 1 or 2, got {count}")
    data_files = [settings.get(f"fich{k + 1}", "") for k in range(int(count))]
    for k, file in enumerate(data_files):
        if file not in files:
            raise ValueError(f"fich{k + 1} must name a file of the folder, got {file!r}")
    return data_files


def _parse_table(file: str, content: bytes) -> tuple[tuple[str, ...], NDArray[np.float64], list[str]]:
    """Return names of the features, features (rows, features) and labels of a table with tabs between columns."""
    import pyarrow as pa
    from pyarrow import csv

    header, _, rows = content.partition(b"\n")
    first = rows.lstrip(b"\r\n")[: 2**20].partition(b"\n")[0]
    if not first.strip():
        raise ValueError(f"{file} must have a header and rows, got no rows")
    n_columns = first.count(b"\t") + 1
    names = [part.strip().strip('"') for part in header.decode("utf-8", "replace").rstrip("\r").split("\t")]
    if len(names) == n_columns:
        names = names[1:]  # the name of the row names, mostly empty
    elif len(names) != n_columns - 1:
        raise ValueError(
            f"the header of {file} must name all {n_columns} columns, or all but the row names, got {len(names)}"
        )
    if len(names) < 2 or names[-1] != LABEL:
        raise ValueError(f"{file} must have row names, features and {LABEL}, in this order, got {names[-3:]}")
    keys = [str(k) for k in range(n_columns)]  # names may be repeated
    types = dict.fromkeys(keys, pa.float64()) | {keys[0]: pa.string(), keys[-1]: pa.string()}
    try:
        table: Any = csv.read_csv(
            io.BytesIO(rows),
            csv.ReadOptions(column_names=keys, block_size=len(rows) + 1),  # a block holds at least a row
            csv.ParseOptions(delimiter="\t"),
            csv.ConvertOptions(column_types=types, null_values=[]),
        )
    except pa.ArrowInvalid as error:
        raise ValueError(f"{file}: {' '.join(str(error).split())[:LONGEST_MESSAGE]}") from error
    features = np.column_stack([table[key].to_numpy() for key in keys[1:-1]])
    n_wrong = features.size - np.isfinite(features).sum()
    if n_wrong:
        raise ValueError(f"{file} must hold finite numbers only, got {n_wrong} other values")
    return tuple(names[:-1]), features, table[keys[-1]].to_pylist()


def _compare_counts(settings: Mapping[str, str], tables: Sequence[tuple[Any, NDArray[np.float64], Any]]) -> list[str]:
    """Return notes where description and data disagree; the data counts."""
    counts = {"n_entradas": tables[0][1].shape[1]}
    counts |= {f"n_patrons{k + 1}": len(features) for k, (_, features, _) in enumerate(tables)}
    return [
        f"{key} is {settings[key]}, the data has {count}"
        for key, count in counts.items()
        if int(settings.get(key, count)) != count
    ]


def _code(texts: Sequence[str]) -> tuple[tuple[int | str, ...], NDArray[np.int64]]:
    """Return labels in order, as whole numbers if all are, and each row's index among them."""
    distinct: set[str] = set(texts)
    if "" in distinct:
        raise ValueError(f"every row must have a label, but {texts.count('')} have none")
    numeric = all(text.removeprefix("-").isdecimal() and str(int(text)) == text for text in distinct)
    ordered = sorted(distinct, key=int) if numeric else sorted(distinct)
    index = {text: k for k, text in enumerate(ordered)}
    codes = np.array([index[text] for text in texts], dtype=np.int64)
    return tuple(int(text) if numeric else text for text in ordered), codes
