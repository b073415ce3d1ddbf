"""What is on disk is the old state or the new one, whole."""

import shlex

import numpy as np
import pytest

from tartree.datasets import cache, fetch_uci, load_uci, uci, uci_names
from tests.datasets.conftest import X_ONE, make_tar, one_file
from tests.suggestions import check_suggestions


def states(folder):
    return sorted(path.name for path in (folder / "uci").glob("state-*"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
@pytest.mark.parametrize("where", ["write_set", "commit"])
def test_an_interrupted_unpack(tmp_path, archive, monkeypatch, error, where):
    other = make_tar(tmp_path / "other.tar", {**one_file("a"), **one_file("b")}, mode="w")
    write = getattr(uci, where)
    calls = []

    def stop(*arguments):
        calls.append(arguments)
        if where == "commit" or len(calls) == 2:
            raise error
        return write(*arguments)

    monkeypatch.setattr(uci, where, stop)
    with pytest.raises(error):
        fetch_uci(other, folder=tmp_path / "new")
    with pytest.raises(FileNotFoundError):
        uci_names(tmp_path / "new")
    monkeypatch.undo()
    fetch_uci(archive, folder=tmp_path / "old")
    before = states(tmp_path / "old")
    calls.clear()
    monkeypatch.setattr(uci, where, stop)
    with pytest.raises(error):
        fetch_uci(other, folder=tmp_path / "old")
    assert states(tmp_path / "old") == before
    assert uci_names(tmp_path / "old") == ["iris", "monks-1", "wine"]
    assert load_uci("iris", folder=tmp_path / "old").X.tolist() == X_ONE
    monkeypatch.undo()
    (tmp_path / "old" / "uci" / "state-left-by-a-killed-process").mkdir()
    fetch_uci(other, folder=tmp_path / "old")
    assert uci_names(tmp_path / "old") == ["a", "b"]
    assert len(states(tmp_path / "old")) == 1
    assert states(tmp_path / "old") != before


def test_the_same_archive_gives_the_same_bytes(tmp_path, archive):
    found = []
    for place in ("one", "two"):
        index = fetch_uci(archive, folder=tmp_path / place)
        state = tmp_path / place / "uci" / index.state
        found.append({path.name: path.read_bytes() for path in state.iterdir()})
    assert found[0] == found[1]


def test_no_pickles(tmp_path, archive):
    index = fetch_uci(archive, folder=tmp_path)
    path = tmp_path / "uci" / index.state / index.sets["iris"].file
    size = path.stat().st_size
    with np.load(path, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "fiU" for name in arrays.files)
    np.savez(path, X=np.array([{}], dtype=object))
    content = path.read_bytes()
    path.write_bytes(content[:size] if len(content) >= size else content + bytes(size - len(content)))
    message = "is damaged; delete it and fetch the sets again with: tartree data uci --folder "
    with pytest.raises(ValueError, match=message) as caught:
        load_uci("iris", folder=tmp_path)
    check_suggestions(str(caught.value))


def test_a_damaged_cache_is_said(tmp_path, archive):
    index = fetch_uci(archive, folder=tmp_path)
    place = tmp_path / "uci"
    whole = (place / "index.json").read_text()
    for text, reason in {
        whole[: len(whole) // 2]: "cannot be read",
        "": "cannot be read",
        "{}": "lacks entries of an index",
        "[]": "lacks entries of an index",
        '{"version": 2}': "has version 2, not 1",
        '{"version": 1, "sets": 1}': "lacks entries of an index",
        '{"version": 1, "skipped": [], "sets": {"iris": {"notes": []}}}': "lacks entries of an index",
    }.items():
        (place / "index.json").write_text(text)
        with pytest.raises(FileNotFoundError) as caught:
            load_uci("iris", folder=tmp_path)
        assert str(caught.value) == (
            f"the UCI sets in {tmp_path} are damaged: {place / 'index.json'} {reason}; fetch them again "
            f"(--from FILE: from an archive) with: tartree data uci --folder {shlex.quote(str(tmp_path))}"
        )
        check_suggestions(str(caught.value))
    (place / "index.json").write_bytes(b"\xff\xfe")
    with pytest.raises(FileNotFoundError, match="cannot be read"):
        uci_names(tmp_path)
    (place / "index.json").write_text(whole)
    file = place / index.state / index.sets["wine"].file
    file.write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="are damaged: the file of wine is missing or was changed"):
        uci_names(tmp_path)
    file.unlink()
    with pytest.raises(FileNotFoundError, match="are damaged: the file of wine is missing or was changed"):
        uci_names(tmp_path)
    fetch_uci(archive, folder=tmp_path)
    assert len(uci_names(tmp_path)) == 3


def test_one_writer_at_a_time(tmp_path, archive):
    with (
        cache.locked(tmp_path / "uci"),
        pytest.raises(OSError, match=r"another process is writing to .*; wait until it is done"),
    ):
        fetch_uci(archive, folder=tmp_path)
    fetch_uci(archive, folder=tmp_path)


def test_sets_replaced_while_one_is_loaded(tmp_path, archive, monkeypatch):
    fetch_uci(archive, folder=tmp_path)
    read = uci.read_arrays

    def replace_first(path):
        monkeypatch.undo()
        fetch_uci(archive, folder=tmp_path)
        return read(path)

    monkeypatch.setattr(uci, "read_arrays", replace_first)
    assert load_uci("iris", folder=tmp_path).X.tolist() == X_ONE
