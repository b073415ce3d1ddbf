"""From an archive to arrays: values, splits, notes, and messages for what is not there."""

import json
import shlex

import numpy as np
import pytest

from tartree.datasets import OFFICIAL, fetch_uci, group, load_uci, uci_index, uci_names
from tartree.datasets.cache import platform_folder
from tests.datasets.conftest import (
    SPLITS,
    X_ONE,
    Y_ONE,
    describe,
    make_tar,
    one_file,
    standardised,
    table,
    two_files,
)
from tests.suggestions import check_suggestions


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_one_file(archive, tmp_path, name):
    fetch_uci(archive, folder=tmp_path / "cache")
    found = load_uci(name, folder=tmp_path / "cache")
    assert found.X.dtype == np.float64
    assert found.y.dtype == np.int64
    assert found.X.tolist() == X_ONE
    assert [found.labels[code] for code in found.y] == Y_ONE
    assert found.labels == (0, 2, 5)
    assert found.columns == ("f1", "f2")
    assert [(train.tolist(), test.tolist()) for train, test in found.splits] == SPLITS
    assert [rows.tolist() for rows in found.tuning_split] == [[0, 1, 2], [5, 4, 3]]
    assert (found.name, found.fixed_test, found.group) == (name, False, "small")
    assert found.notes == ("1 of 3 classes missing from the test rows",)


def test_two_files(archive, tmp_path):
    fetch_uci(archive, folder=tmp_path)
    found = load_uci("monks-1", folder=tmp_path)
    assert np.array_equal(found.X, np.concatenate([standardised(0, 8), standardised(1, 4) * 3 + 1]))
    assert "".join(found.labels[code] for code in found.y) == "abcabcabbaba"
    assert len(found.splits) == 4
    for train, test in found.splits:
        assert train.tolist() == list(range(8))
        assert test.tolist() == list(range(8, 12))
    assert [rows.tolist() for rows in found.tuning_split] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert found.fixed_test
    assert found.notes == (
        "train and test on different scales (only the training rows are standardised)",
        "1 of 3 classes missing from the test rows",
    )


def test_as_frame(archive, tmp_path):
    fetch_uci(archive, folder=tmp_path)
    frame = load_uci("iris", as_frame=True, folder=tmp_path).X
    assert frame.column_names == ["f1", "f2"]
    assert frame["f2"].to_pylist() == [row[1] for row in X_ONE]


def test_scales(tmp_path):
    """Each part on its own; only one of them; both together, as it should be."""
    together = standardised(2, 12)
    files = {**two_files("own"), **two_files("other", 2.0), **two_files("shifted", 1.0, 0.5), **two_files("whole")}
    files["whole/whole_train_R.dat"] = table(together[:8].tolist(), "abcabcab")
    files["whole/whole_test_R.dat"] = table(together[8:].tolist(), "abca")
    files["other/other_train_R.dat"], files["other/other_test_R.dat"] = (
        table((standardised(0, 8) * 9).tolist(), "abcabcab"),
        table(standardised(1, 4).tolist(), "abca"),
    )
    index = fetch_uci(make_tar(tmp_path / "a.tar", files, mode="w"), folder=tmp_path)
    assert index.sets["own"].notes[0] == "train and test standardised each on its own"
    assert "only the test rows are standardised" in index.sets["other"].notes[0]
    assert "only the training rows are standardised" in index.sets["shifted"].notes[0]
    assert index.sets["whole"].notes == ()


def test_names_groups_and_index(archive, tmp_path):
    steps = []
    index = fetch_uci(archive, folder=tmp_path, progress=lambda *step: steps.append(step))
    assert uci_names(tmp_path) == ["iris", "monks-1", "wine"]
    assert uci_index(tmp_path) == index
    assert steps == [("unpack", done, 3) for done in range(4)]
    assert (index.source, len(index.sha256), index.failed, index.skipped) == ("data.tar.gz", 64, {}, ())
    text = (tmp_path / "uci" / "index.json").read_text()
    assert json.loads(text)["version"] == 1
    assert str(tmp_path) not in text
    assert [group(rows) for rows in (1, 999, 1000, 9999, 10_000)] == ["small", "small", "medium", "medium", "large"]
    assert len(OFFICIAL) == len(set(OFFICIAL)) == 121
    assert list(OFFICIAL) == sorted(OFFICIAL)


def test_names_that_are_not_there(tmp_path, all_files):
    broken = {**all_files, "zoo/zoo.txt": b"n_arquivos= 3\n"}
    fetch_uci(make_tar(tmp_path / "a.tar", broken, mode="w"), folder=tmp_path)
    for name, message in {
        "Irys": "name must be one of 3 sets, got 'Irys'; did you mean 'iris'?",
        "???": "name must be one of 3 sets, got '???'; uci_names() lists them",
        "zoo": "the set 'zoo' could not be read from a.tar: n_arquivos must be 1 or 2, got 3",
        "adult": "the set 'adult' was not in a.tar; fetch an archive that holds it with: "
        f"tartree data uci --folder {shlex.quote(str(tmp_path))}",
    }.items():
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            load_uci(name, folder=tmp_path)
        assert str(caught.value) == message


@pytest.mark.parametrize("name", [None, 5, ["iris"], b"iris"])
def test_a_name_is_a_string(tmp_path, name):
    with pytest.raises(TypeError) as caught:
        load_uci(name, folder=tmp_path)
    assert str(caught.value) == f"name must be a string, got {name!r}; uci_names() lists the names"


def test_the_folder(archive, tmp_path, monkeypatch):
    monkeypatch.setenv("TARTREE_DATA", str(tmp_path / "chosen"))
    with pytest.raises(FileNotFoundError, match=r"no UCI sets in .*chosen yet; fetch them with: tartree data uci$"):
        load_uci("iris")
    with pytest.raises(FileNotFoundError, match=r"tartree data uci --folder elsewhere$"):
        uci_names("elsewhere")
    with pytest.raises(FileNotFoundError) as caught:
        uci_names(tmp_path / "a place")
    assert check_suggestions(str(caught.value)) == [f"tartree data uci --folder '{tmp_path / 'a place'}'"]
    assert not (tmp_path / "chosen").exists()
    fetch_uci(archive)
    assert load_uci("iris").X.tolist() == X_ONE
    assert {path.name for path in tmp_path.iterdir()} == {"chosen", "data.tar.gz"}
    home = tmp_path / "home"
    assert platform_folder("linux", {}, home) == home / ".cache" / "tartree"
    assert platform_folder("linux", {"XDG_CACHE_HOME": "relative"}, home) == home / ".cache" / "tartree"
    assert platform_folder("linux", {"XDG_CACHE_HOME": str(tmp_path)}, home) == tmp_path / "tartree"
    assert platform_folder("darwin", {}, home) == home / "Library" / "Caches" / "tartree"
    assert platform_folder("win32", {}, home) == home / "AppData" / "Local" / "tartree" / "Cache"
    assert platform_folder("win32", {"LOCALAPPDATA": str(tmp_path)}, home) == tmp_path / "tartree" / "Cache"


def changed(content, old, new):
    assert old in content
    return content.replace(old, new)


DATA, FOLDS, TEXT = "bad/bad_R.dat", "bad/conxuntos_kfold.dat", "bad/bad.txt"
BREAKS = [
    (DATA, b"-1.25", b"nan", "bad_R.dat must hold finite numbers only, got 1 other values"),
    (DATA, b"-1.25", b"", "invalid value ''"),
    (DATA, b"-1.25", b"?", "invalid value '?'"),
    (DATA, b"\t-1.25", b"", "must name all 3 columns, or all but the row names, got 4"),
    (DATA, b"\t10.0", b"", "Expected 4 columns, got 3"),
    (
        DATA,
        b"clase",
        b"class",
        "must have row names, features and clase, in this order, got ['f1', ",
    ),
    (DATA, b"10.0\t5", b"10.0\t", "every row must have a label, but 1 have none"),
    (DATA, None, b"", "must have a header and rows, got no rows"),
    (DATA, None, b"\tf1\tclase\n", "must have a header and rows, got no rows"),
    (FOLDS, b"0 1 4 2", b"0 1 4 6", "line 1 of conxuntos_kfold.dat must hold row numbers from 0 to 5, got 6"),
    (FOLDS, b"0 1 4 2", b"0 1 4 -1", "got -1"),
    (FOLDS, b"0 1 4 2", b"0 1 4 x", "must hold whole numbers only, got 'x'"),
    (FOLDS, b"0 1 4 2", b"0 1 4 1", "must hold each row once, got 1 repeated"),
    (FOLDS, b"0 1 4 2", b"0 1 4 3", "of split 0 in conxuntos_kfold.dat must differ, got 1 in both"),
    (FOLDS, b"0 1 4 2 \n", b"", "must have 8 lines of row numbers, got 7"),
    (TEXT, b"fich1= bad_R.dat", b"fich1= ../iris_R.dat", "got '../iris_R.dat'"),
    (TEXT, b"n_clases= 3", b"n_clases= three", "n_clases in bad.txt must be a whole number, got 'three'"),
    (TEXT, None, b"", "n_arquivos must be 1 or 2, got None"),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), BREAKS)
def test_a_broken_set_leaves_the_others(tmp_path, file, old, new, message):
    files = {**one_file("bad"), **one_file("iris")}
    files[file] = new if old is None else changed(files[file], old, new)
    index = fetch_uci(make_tar(tmp_path / "a.tar", files, mode="w"), folder=tmp_path)
    assert list(index.sets) == ["iris"]
    assert message in index.failed["bad"]
    assert "\n" not in index.failed["bad"]


def test_sets_with_files_missing(tmp_path):
    files = {**one_file("folds"), **one_file("text"), **one_file("tuning"), **one_file("iris"), **two_files("two")}
    del files["folds/conxuntos_kfold.dat"], files["text/text.txt"], files["tuning/conxuntos.dat"]
    files["iris/conxuntos.dat"] = b"0 1\n"
    files["two/two_test_R.dat"] = table([[1.0]], "a")
    index = fetch_uci(make_tar(tmp_path / "a.tar", files, mode="w"), folder=tmp_path)
    assert list(index.sets) == ["iris", "tuning"]
    assert load_uci("tuning", folder=tmp_path).tuning_split is None
    assert index.sets["iris"].notes[0] == ("no tuning split: conxuntos.dat must have 2 lines of row numbers, got 1")
    assert "which lists the data files, is missing" in index.failed["text"]
    assert "in conxuntos_kfold.dat, which is missing" in index.failed["folds"]
    assert "the same features, got 3 and 1" in index.failed["two"]


def test_a_description_that_disagrees_is_noted(tmp_path):
    files = {**one_file("iris", end="\r\n")}
    files["iris/iris.txt"] = describe("iris", ["iris_R.dat"], [7], 3, 4)
    index = fetch_uci(make_tar(tmp_path / "a.tar", files, mode="w"), folder=tmp_path)
    assert index.sets["iris"].notes[:3] == (
        "n_entradas is 3, the data has 2",
        "n_patrons1 is 7, the data has 6",
        "3 classes in the data, 4 in iris.txt",
    )
    assert load_uci("iris", folder=tmp_path).labels == (0, 2, 5)
