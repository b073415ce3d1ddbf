"""Archives nobody vouches for: layouts, evil paths, links, bombs, damage."""

import bz2
import lzma
import os
import tarfile

import pytest

from tartree.datasets import fetch_uci, load_uci
from tartree.datasets.archive import DamagedArchive, Limits
from tests.datasets.conftest import X_ONE, make_tar, one_file


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "cache" not in path.parts}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("top", ["", "./", "data/", "./jmlr/data/"])
def test_layouts(tmp_path, all_files, mode, top):
    others = {"README.txt": b"", "iris/old/old.txt": b"", "iris/old/iris/iris.txt": b"", "other/notes.dat": b"1"}
    path = make_tar(tmp_path / "any", {**all_files, **others}, mode=mode, top=top)
    index = fetch_uci(path, folder=tmp_path / "cache")
    assert list(index.sets) == ["iris", "monks-1", "wine"]
    assert (index.failed, index.skipped) == ({}, ())


def test_a_folder(tmp_path, all_files):
    for name, content in all_files.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    secret = tmp_path / "secret.dat"
    secret.write_text("x")
    os.symlink(secret, tmp_path / "data" / "iris" / "link.dat")
    os.symlink(tmp_path, tmp_path / "data" / "loop")
    index = fetch_uci(tmp_path / "data", folder=tmp_path / "cache")
    assert list(index.sets) == ["iris", "monks-1", "wine"]
    assert (index.source, index.sha256) == ("data", None)
    assert index.skipped == (f"{os.path.join('iris', 'link.dat')}: not a regular file",)


def test_evil_entries_are_left_out(tmp_path, all_files):
    outside = tmp_path / "outside"
    evil = {f"{outside}/outside.txt": b"!", "../up/up.txt": b"!", "iris/../../up.txt": b"!", "..\\up\\up.txt": b"!"}
    evil |= {"no name/no name.txt": b"", "con/con_R.dat": b"", "copy/iris/iris.txt": b""}
    members = []
    for name, kind in {
        "iris/conxuntos.dat": tarfile.SYMTYPE,
        "wine/hard.dat": tarfile.LNKTYPE,
        "wine/device.dat": tarfile.CHRTYPE,
        "wine/pipe.dat": tarfile.FIFOTYPE,
    }.items():
        members.append(tarfile.TarInfo(name))
        members[-1].type, members[-1].linkname = kind, "/etc/passwd"
    path = make_tar(tmp_path / "a.tar.gz", {**all_files, **evil}, members)
    before = everything(tmp_path)
    index = fetch_uci(path, folder=tmp_path / "cache")
    assert everything(tmp_path) == before
    assert list(index.sets) == ["iris", "monks-1", "wine"]
    assert list(index.failed) == ["con"]
    assert len([text for text in index.skipped if text.endswith("its path is outside the archive")]) == 4
    assert len([text for text in index.skipped if text.endswith("not a regular file")]) == 4
    assert "no name: not a name for a set" in index.skipped
    assert load_uci("iris", folder=tmp_path / "cache").tuning_split is not None


def test_the_last_of_a_name_counts(tmp_path):
    path = make_tar(tmp_path / "a.tar", {"iris/iris_R.dat": b"", **one_file("iris")}, mode="w")
    with tarfile.open(path, "a") as tar:
        again = tarfile.TarInfo("iris/conxuntos.dat")
        tar.addfile(again)
    index = fetch_uci(path, folder=tmp_path)
    assert index.sets["iris"].notes[0].endswith("got 0")
    assert load_uci("iris", folder=tmp_path).X.tolist() == X_ONE


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(entries=5), "at most 5 entries"),
        (Limits(total=20_000), "unpack to at most 20,000 bytes"),
        (Limits(total=3_000_000, file=100), "unpack to at most 3,000,000 bytes"),
    ],
)
def test_limits(tmp_path, all_files, limits, message):
    path = make_tar(tmp_path / "a.tar.gz", {**all_files, "bomb.dat": bytes(4_000_000)})
    with pytest.raises(DamagedArchive, match=message):
        fetch_uci(path, folder=tmp_path / "cache", limits=limits)
    assert [entry.name for entry in (tmp_path / "cache" / "uci").iterdir()] == ["lock"]


def test_a_file_that_is_too_large_is_left_out(tmp_path, all_files):
    big = {"big/big.txt": b"n_arquivos= 1\nfich1= big_R.dat\n", "big/big_R.dat": bytes(4_000)}
    index = fetch_uci(make_tar(tmp_path / "a.tar.gz", {**all_files, **big}), folder=tmp_path, limits=Limits(file=3_000))
    assert index.skipped == ("big/big_R.dat: above 3,000 bytes",)
    assert list(index.failed) == ["big"]
    assert len(index.sets) == 3


def test_damage(tmp_path, archive, all_files):
    whole = archive.read_bytes()
    plain = make_tar(tmp_path / "plain.tar", all_files, mode="w").read_bytes()
    fetch_uci(archive, folder=tmp_path / "cache")
    for content in (
        b"",
        b"not a tar",
        whole[:-3],
        whole[: len(whole) // 2],
        whole[:-8] + bytes(8),
        plain[:5_000],
        bz2.compress(plain)[:500],
        lzma.compress(plain)[:500],
        b"\x1f\x8b" + bytes(50),
    ):
        path = tmp_path / "wrong"
        path.write_bytes(content)
        with pytest.raises((DamagedArchive, OSError)) as caught:
            fetch_uci(path, folder=tmp_path / "cache")
        assert "\n" not in str(caught.value)
    for files, message in (
        ({"a/b.txt": b""}, "must hold a folder NAME with NAME.txt for each set, got none"),
        ({"a/a.txt": b""}, "no set of .* can be read; the first is a: n_arquivos must be 1 or 2"),
    ):
        with pytest.raises(DamagedArchive, match=message):
            fetch_uci(make_tar(tmp_path / "empty.tar", files, mode="w"), folder=tmp_path / "cache")
    with pytest.raises(FileNotFoundError):
        fetch_uci(tmp_path / "none", folder=tmp_path / "cache")
    assert load_uci("iris", folder=tmp_path / "cache").X.tolist() == X_ONE
