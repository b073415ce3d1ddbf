import errno
import hashlib
import io
import json
import os
import pickle
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save, save_file

from tartree import persist
from tartree.persist import FORMAT_VERSION, ModelFileError, read, write

from .optional import given, st

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
DOCUMENT = {
    "structure": {"depth": 3, "window": 2, "stride": 2},
    "classes": ["nein", "ja", "größer", "日本", "\ud800", 'a "quoted"\nline', ""],
    "": {"large": 2**200, "small": -(2**63), "tiny": 5e-324, "third": 1 / 3, "minus zero": -0.0},
    "nothing": [None, True, False, [], {}, [[1], [2.5]]],
}


def some_arrays():
    generator = np.random.default_rng(0)
    return {
        "weight": generator.normal(size=(3, 4)).astype(np.float32),
        "bias": generator.normal(size=7),
        "größe/日本 x": np.array([1, 0, 1], dtype=bool),
        "children": generator.integers(-5, 5, size=(2, 3, 2)),
        "nothing": np.zeros((0, 4), dtype=np.float32),
        "scalar": np.array(2.5),
    }


def assert_same(found, expected):
    (document, arrays), (expected_document, expected_arrays) = found, expected
    assert json.dumps(document) == json.dumps(expected_document)  # keeps apart 1, 1.0 and True, and -0.0 and 0.0
    assert arrays.keys() == expected_arrays.keys()
    for name, array in arrays.items():
        assert array.dtype == expected_arrays[name].dtype.newbyteorder("=")
        assert array.dtype.isnative
        assert array.shape == expected_arrays[name].shape
        assert array.tobytes() == expected_arrays[name].astype(array.dtype).tobytes()


def pack(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def signed(document="{}", version="1", arrays=None, **metadata):
    """A file as a stranger might make it: with a checksum that fits."""
    arrays = arrays or {}
    checksum = persist._checksum(version, document, arrays)
    return save(
        arrays, {"format": "tartree", "version": version, "document": document, "checksum": checksum} | metadata
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.tart"


@pytest.fixture
def message_of(path):
    def message_of(content):
        path.write_bytes(content)
        with pytest.raises(ModelFileError) as caught:
            read(path)
        message = str(caught.value)
        assert message.startswith(repr(str(path)))
        assert len(message.splitlines()) == 1
        assert len(message) < 500
        return message

    return message_of


def test_what_is_written_is_read(path):
    write(path, DOCUMENT, some_arrays())
    assert_same(read(path), (DOCUMENT, some_arrays()))
    write(path, {}, {})
    assert read(path) == ({}, {})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (3, 1, 2)])
def test_every_dtype_and_shape_keeps_its_bits(path, dtype, shape):
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    noise = np.random.default_rng(1).bytes(n_bytes)  # among them NaNs with payloads
    array = np.frombuffer(bytes(b & 1 for b in noise) if dtype == "?" else noise, dtype).reshape(shape)
    write(path, {}, {"x": array})
    assert_same(read(path), ({}, {"x": array}))


def test_bits_of_not_a_number_are_kept(path):
    bits = np.array([0x7FF8000000000001, 0xFFF8DEADBEEF0000, 0x7FF0000000000000, 1 << 63], dtype=np.uint64)
    write(path, {}, {"x": bits.view(np.float64)})
    assert read(path)[1]["x"].view(np.uint64).tolist() == bits.tolist()


def test_strided_and_big_endian_arrays_are_written_by_value(path):
    base = np.arange(24.0).reshape(4, 6)
    arrays = {
        "transposed": base.T,
        "every other": base[:, ::2],
        "backwards": base[::-1],
        "broadcast": np.broadcast_to(np.float32(3), (2, 2)),
        "big": base.astype(">f8"),
        "big scalar": np.array(258, dtype=">i2"),
    }
    write(path, {}, arrays)
    assert_same(read(path), ({}, arrays))
    assert read(path)[1]["big scalar"] == 258


def test_arrays_read_are_the_callers_own(path):
    write(path, {}, some_arrays())
    for array in read(path)[1].values():
        assert array.flags.writeable
        assert array.flags.owndata
        assert array.flags.c_contiguous
        array[...] = 1
    assert_same(read(path), ({}, some_arrays()))


json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), json_data, max_size=4))
def test_any_json_reads_back(tmp_path_factory, document):
    path = tmp_path_factory.getbasetemp() / "any.tart"
    write(path, document, {})
    assert_same(read(path), (document, {}))


def test_the_same_content_gives_the_same_bytes(path, tmp_path):
    write(path, DOCUMENT, some_arrays())
    other = tmp_path / "other.tart"
    write(other, DOCUMENT, dict(reversed(some_arrays().items())))
    assert path.read_bytes() == other.read_bytes()
    assert (int.from_bytes(path.read_bytes()[:8], "little")) % 8 == 0


def test_paths_may_be_text_or_bytes(path):
    write(str(path), {"a": 1}, {})
    assert read(os.fsencode(path)) == read(path) == ({"a": 1}, {})
    with pytest.raises(TypeError):
        read(0)


def test_the_library_reads_our_files_and_we_read_its(path):
    write(path, DOCUMENT, some_arrays())
    assert_same(({}, load_file(path)), ({}, some_arrays()))
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    assert metadata["format"] == "tartree"
    assert metadata["version"] == str(FORMAT_VERSION) == "1"
    assert json.loads(metadata["document"]) == DOCUMENT
    save_file(some_arrays(), path, metadata)
    assert_same(read(path), (DOCUMENT, some_arrays()))


def test_the_checksum_is_as_described(path):
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    write(path, {"a": [1]}, {"x": array})
    with safe_open(path, framework="np") as file:
        checksum = file.metadata()["checksum"]
    described = json.dumps(["1", '{"a":[1]}', [["x", "<i4", [2, 3]]]]).encode()
    assert checksum == hashlib.sha256(described + array.astype("<i4").tobytes()).hexdigest()


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"a": float("nan")}, ValueError),
        ({"a": float("inf")}, ValueError),
        ({"a": np.int64(1)}, TypeError),
        ({"a": np.zeros(2)}, TypeError),
        ({"a": {1, 2}}, TypeError),
        ({"a": b"bytes"}, TypeError),
        ({"a": (1, 2)}, TypeError),
        ({1: "a"}, TypeError),
        ({1: "a", "1": "b"}, ValueError),
        ([1], TypeError),
        ("text", TypeError),
    ],
)
def test_a_document_that_would_not_read_back_is_refused(path, document, error):
    with pytest.raises(error):
        write(path, document, {})
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.array(["a"], dtype=object), "object"),
        (np.array(["a"]), "<U1"),
        (np.zeros(2, dtype=complex), "complex128"),
        (np.zeros(2, dtype="M8[s]"), r"datetime64\[s\]"),
        (np.zeros(2, dtype=[("a", "f4")]), "'a'"),
        ([1.0], "list"),
        (torch.zeros(2), "torch.float32"),
    ],
)
def test_an_array_of_another_kind_is_refused(path, array, kind):
    with pytest.raises(TypeError, match=f"boolean, integer or float dtype, got .*{kind}.* for 'x'"):
        write(path, {}, {"x": array})
    assert list(path.parent.iterdir()) == []


def test_a_reserved_name_and_a_huge_document_are_refused(path, monkeypatch):
    with pytest.raises(ValueError, match="must not be named __metadata__"):
        write(path, {}, {"__metadata__": np.zeros(1)})
    monkeypatch.setattr(persist, "_HEADER_LIMIT", 1000)
    with pytest.raises(ValueError, match="less than 1000 bytes as JSON, got 1"):
        write(path, {"a": "x" * 1000}, {})
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("function", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_a_failure_leaves_the_old_file_alone(path, monkeypatch, function, error):
    def fail(*arguments, **keywords):
        raise error

    write(path, {"old": 1}, some_arrays())
    before = path.read_bytes()
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(error)) as caught:
        write(path, {"new": 1}, {})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    if isinstance(error, OSError):
        assert str(caught.value) == f"[Errno 28] No space left on device: {str(path)!r}"


def test_a_replaced_file_stays_as_it_was_if_its_writer_fails(path):
    path.write_bytes(b"old")
    with pytest.raises(FileNotFoundError) as caught, persist.replaced_file(str(path)) as file:
        file.writelines(source.read_bytes() for source in (path, path.with_name("none")))
    assert caught.value.filename == str(path.with_name("none"))  # not that of the replaced file
    assert path.read_bytes() == b"old"
    with persist.replaced_file(str(path)) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_leaves_no_new_file(path, monkeypatch):
    def fail(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KeyboardInterrupt):
        write(path, {}, {})
    assert list(path.parent.iterdir()) == []


def test_content_is_on_disk_before_the_file_gets_its_name(path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace

    def seen_fsync(descriptor):
        calls.append(("fsync", os.fstat(descriptor).st_size))
        fsync(descriptor)

    def seen_replace(source, target):
        calls.append(("replace", os.stat(source).st_size))
        assert Path(source).parent == Path(target).parent
        replace(source, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_replace)
    write(path, DOCUMENT, some_arrays())
    assert calls == [("fsync", path.stat().st_size), ("replace", path.stat().st_size)]


def test_killing_the_writer_keeps_the_old_file(path):
    write(path, {"old": 1}, {})
    program = (
        "import os, sys, numpy; from tartree import persist;"
        "os.fsync = lambda descriptor: os._exit(9);"
        "persist.write(sys.argv[1], {'new': 1}, {'x': numpy.zeros(9)})"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == 9
    assert read(path) == ({"old": 1}, {})


posix = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


@posix
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_usual_permissions(path, umask, mode):
    before = os.umask(umask)
    try:
        write(path, {}, {})
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.parametrize("mode", [0o600, 0o666, 0o640])
def test_an_old_files_permissions_stay(path, mode):
    write(path, {"old": 1}, {})
    path.chmod(mode)
    write(path, {"new": 1}, {})
    assert read(path) == ({"new": 1}, {})
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
def test_links_stay_links(path, tmp_path):
    (tmp_path / "folder").mkdir()
    real = tmp_path / "folder" / "real.tart"
    path.symlink_to(real)
    for number in range(2):  # the first write makes the file that the link points to
        write(path, {"number": number}, {})
        assert path.is_symlink()
        assert read(real) == read(path) == ({"number": number}, {})
    assert list(real.parent.iterdir()) == [real]
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(OSError, match=r"model\.tart") as caught:
        write(path, {}, {})
    assert caught.value.errno == errno.ELOOP
    assert path.is_symlink()


def test_errors_of_the_system_are_pythons_own(path, tmp_path):
    for missing in (tmp_path / "no" / "folder" / "model.tart", path):
        with pytest.raises(FileNotFoundError) as caught:
            read(missing)
        assert caught.value.filename == str(missing)
    missing = tmp_path / "no" / "folder" / "model.tart"
    with pytest.raises(FileNotFoundError) as caught:
        write(missing, {}, {})
    assert caught.value.filename == str(missing)
    with pytest.raises(IsADirectoryError) as caught:
        write(tmp_path, {}, {})
    assert caught.value.filename == str(tmp_path)
    with pytest.raises((IsADirectoryError, PermissionError)):
        read(tmp_path)
    path.write_text("a file")
    with pytest.raises((NotADirectoryError, FileNotFoundError)):
        write(path / "model.tart", {}, {})
    with pytest.raises(OSError, match="x" * 300):
        write(tmp_path / ("x" * 300), {}, {})
    assert list(tmp_path.iterdir()) == [path]


@posix
def test_a_device_or_pipe_is_not_replaced(path):
    os.mkfifo(path)
    with pytest.raises(OSError, match="Not a regular file"):
        write(path, {}, {})
    assert stat.S_ISFIFO(path.stat().st_mode)
    with pytest.raises(OSError, match="Not a regular file"):
        write(os.devnull, {}, {})


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission_is_said(path, tmp_path):
    write(path, {"old": 1}, {})
    path.chmod(0o444)
    with pytest.raises(PermissionError, match=r"model\.tart"):
        write(path, {"new": 1}, {})
    path.chmod(0o644)
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError, match=r"model\.tart"):
            write(path, {"new": 1}, {})
    finally:
        tmp_path.chmod(0o755)
    assert read(path) == ({"old": 1}, {})
    path.chmod(0)
    with pytest.raises(PermissionError):
        read(path)


def test_a_read_only_file_is_not_replaced(path, monkeypatch):
    write(path, {"old": 1}, {})
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    with pytest.raises(PermissionError, match=r"Permission denied: .*model\.tart"):
        write(path, {"new": 1}, {})
    assert read(path) == ({"old": 1}, {})


def a_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data.pkl", pickle.dumps({"a": 1}))
    return buffer.getvalue()


class Executed:
    def __reduce__(self):
        return (pytest.fail, ("a file ran code",))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\x10", "does not begin as"),
        (b"\x10\0\0\0\0\0\0\0", "does not begin as"),
        (b"age,income,label\n42,1000,yes\n" * 20, "does not begin as"),
        (pickle.dumps(Executed()), "does not begin as"),
        (pickle.dumps(Executed(), protocol=0), "does not begin as"),
        (a_zip(), "does not begin as"),
        (json.dumps(DOCUMENT).encode(), "does not begin as"),
        (b"\x7fELF" + bytes(1000), "does not begin as"),
        (bytes(1000), "does not begin as"),
        (save({"x": np.zeros(3)}), "safetensors file of another kind"),
        (save({"x": np.zeros(3)}, {"format": "pt"}), "safetensors file of another kind"),
        (save({}), "safetensors file of another kind"),
        (pack({"__metadata__": ["tartree"]}), "safetensors file of another kind"),
    ],
)
def test_a_foreign_file_is_named_so(message_of, content, why):
    message = message_of(content)
    assert "is not a tartree model: " in message
    assert why in message


@pytest.mark.parametrize("version", ["2", "10", "999999999"])
def test_a_newer_file_asks_for_an_upgrade(message_of, version):
    for content in (signed(version=version), pack({"__metadata__": {"format": "tartree", "version": version}}, b"?")):
        assert message_of(content).endswith(
            f"was written by a newer tartree (format {version}); this one reads up to 1: "
            "upgrade with pip install -U tartree"
        )


@pytest.mark.parametrize("version", ["0", "-1", "01", "1.0", " 1", "²", "x", "", "9" * 10_000, 1, None, ["1"]])
def test_an_odd_version_is_damage(message_of, version):
    content = pack({"__metadata__": {"format": "tartree", "version": version, "document": "{}", "checksum": ""}})
    assert "is damaged: its version is unknown" in message_of(content)


def test_all_four_texts_are_needed(message_of, path):
    path.write_bytes(signed())
    assert read(path) == ({}, {})
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    for missing in ("checksum", "document"):
        rest = {key: value for key, value in metadata.items() if key != missing}
        assert "four texts: format, version, document and checksum" in message_of(save({}, rest))
        assert "four texts" in message_of(pack({"__metadata__": rest | {missing: 1}}))
        assert "four texts" in message_of(save({}, rest | {"other": ""}))
    assert "four texts" in message_of(signed(author="somebody"))
    for wrong in ("", "0" * 64, metadata["checksum"].upper()):
        assert "its checksum does not match" in message_of(signed(checksum=wrong))
    assert "its checksum does not match" in message_of(signed(document='{"a":1}').replace(b'\\"a', b'\\"b'))


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("{} {}", "Extra data"),
        ('{"a":NaN}', "not finite"),
        ('{"a":[-Infinity]}', "not finite"),
        ('{"a":1e999}', "not finite"),
        ('{"a":1,"a":2}', "a key is repeated"),
        ('{"a":[{"b":1,"b":1}]}', "a key is repeated"),
        ('{"a":' + "9" * 10_000 + "}", "digits"),
        ("[" * 100_000, "recursion"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "recursion"),
        ("[]", "must be a JSON object"),
        ("null", "must be a JSON object"),
    ],
)
def test_a_malformed_document_is_damage(message_of, document, why):
    message = message_of(signed(document))
    assert "is damaged: its document" in message
    assert why in message


def test_a_malformed_header_is_damage(message_of):
    good = signed()[8:].decode().strip()
    for header in (
        b"{}{}",
        b'{"a":"\xff"}',
        b'{"a":' * 100_000,
        b'{"a":' + b"[" * 1_000_000,
        b'{"a":' + b"9" * 1_000_000 + b"}",
        ("{" + good[1:-1] + "," + good[1:]).encode(),
        good.replace('"version":"1"', '"version":"1","version":"1"').encode(),
    ):
        assert "is damaged: its header is not valid JSON" in message_of(pack(header))


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2**63]},
        {"shape": [2**70]},
        {"shape": [-1]},
        {"shape": [2.0]},
        {"shape": [True]},
        {"shape": "2"},
        {"shape": [2] + [1] * 100},
        {"shape": [0, 2**62, 2**62], "data_offsets": [0, 0]},
        {"shape": [0, 2**64 - 1], "data_offsets": [0, 0]},
        {"shape": [2**40], "data_offsets": [0, 2**43]},
        {"shape": [2**40]},
        {"data_offsets": [0, 2**63]},
        {"data_offsets": [16, 0]},
        {"data_offsets": [-16, 0]},
        {"data_offsets": [8, 24]},
        {"data_offsets": None},
        {"dtype": "F32"},
        {"dtype": "BF16"},
        {"dtype": "F8_E4M3"},
        {"dtype": "O"},
        {"dtype": 1},
    ],
)
def test_arrays_that_do_not_fit_are_damage(message_of, change):
    content = signed(arrays={"x": np.zeros(2)})
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["x"] |= change
    assert "is damaged: its arrays do not" in message_of(pack(header, content[8 + length :]))


def test_overlapping_arrays_and_holes_are_damage(message_of):
    entry = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
    metadata = json.loads(signed()[8:])["__metadata__"]
    for other in ([0, 4], [2, 6], [5, 9]):
        header = {"__metadata__": metadata, "x": entry, "y": entry | {"data_offsets": other}}
        assert "is damaged: its arrays do not" in message_of(pack(header, bytes(other[1])))


def test_a_file_cut_short_or_longer_is_damage(message_of, path):
    write(path, DOCUMENT, some_arrays())
    good = path.read_bytes()
    header_end = 8 + int.from_bytes(good[:8], "little")
    for end in range(9, len(good), 7):
        message = message_of(good[:end])
        assert ("ends within its header" if end < header_end else "cut short or changed") in message
    for tail in (b"\0", b" ", b"\n", b"garbage", good):
        assert "is damaged: its arrays do not fill it exactly" in message_of(good + tail)


@pytest.mark.parametrize("length", [0, 1, 2, 100, 10**6, 10**8, 10**8 + 1, 2**31, 2**40, 2**63, 2**64 - 1])
def test_a_wrong_length_of_the_header_is_an_error(message_of, path, length):
    write(path, DOCUMENT, some_arrays())
    content = path.read_bytes()
    assert message_of(length.to_bytes(8, "little") + content[8:])


@posix
def test_sizes_that_a_file_declares_take_no_memory(path):
    resource = pytest.importorskip("resource")
    metadata = json.loads(signed()[8:])["__metadata__"]
    entry = {"dtype": "F64", "shape": [2**37], "data_offsets": [0, 2**40]}
    path.write_bytes(pack({"__metadata__": metadata, "x": entry}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelFileError):
        read(path)
    path.write_bytes((10**8).to_bytes(8, "little") + b"{}")
    with pytest.raises(ModelFileError):
        read(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes on Linux


def test_a_path_with_a_line_break_stays_on_one_line(tmp_path):
    path = tmp_path / "two\nlines.tart"
    path.write_bytes(b"")
    with pytest.raises(ModelFileError) as caught:
        read(path)
    assert len(str(caught.value).splitlines()) == 1
    assert "two\\nlines.tart" in str(caught.value)


def test_the_error_is_a_value_error():
    assert issubclass(ModelFileError, ValueError)


def flip(content, generator):
    for place in generator.integers(len(content), size=generator.integers(1, 9)):
        content[place] ^= int(generator.integers(1, 256))


def flip_header(content, generator):
    content[generator.integers(8, 8 + int.from_bytes(content[:8], "little"))] ^= 1 << int(generator.integers(8))


def replace_digit(content, generator):
    digits = [i for i in range(8, 8 + int.from_bytes(content[:8], "little")) if chr(content[i]).isdigit()]
    content[generator.choice(digits)] = ord("0") + int(generator.integers(10))


def a_range(content, generator, longest=64):
    start = int(generator.integers(len(content)))
    return start, min(len(content), start + int(generator.integers(1, longest)))


def cut_end(content, generator):
    del content[generator.integers(len(content)) :]


def cut_start(content, generator):
    del content[: generator.integers(1, len(content))]


def cut_middle(content, generator):
    start, end = a_range(content, generator)
    del content[start:end]


def swap(content, generator):
    size = int(generator.integers(1, 40))
    one, other = sorted(generator.choice(len(content) // size, size=2, replace=False) * size)
    first, second = content[one : one + size], content[other : other + size]
    content[one : one + size], content[other : other + size] = second, first


def insert(content, generator):
    place = int(generator.integers(len(content)))
    content[place:place] = generator.bytes(generator.integers(1, 20))


def append(content, generator):
    content += generator.bytes(generator.integers(1, 20))


def duplicate(content, generator):
    start, end = a_range(content, generator)
    content[start:start] = content[start:end]


def fill_zeros(content, generator):
    start, end = a_range(content, generator, 200)
    content[start:end] = bytes(end - start)


def fill_spaces(content, generator):
    start, end = a_range(content, generator)
    content[start:end] = b" " * (end - start)


def change_length(content, generator):
    length = int.from_bytes(content[:8], "little")
    near = length + int(generator.integers(-20, 20))
    content[:8] = int(generator.choice([near, 2 ** int(generator.integers(64)), 0, 1])).to_bytes(8, "little")


def change_case(content, generator):
    place = int(generator.choice([i for i in range(len(content)) if chr(content[i]).isalpha()]))
    content[place] ^= 32


MUTATIONS = [
    *(flip, flip_header, replace_digit, cut_end, cut_start, cut_middle, swap, insert),
    *(append, duplicate, fill_zeros, fill_spaces, change_length, change_case),
]


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_mutated_file_is_an_error_or_the_same(message_of, path, mutate):
    write(path, DOCUMENT, some_arrays())
    good = path.read_bytes()
    for seed in range(60):
        content = bytearray(good)
        mutate(content, np.random.default_rng(seed))
        try:
            path.write_bytes(content)
            found = read(path)
        except ModelFileError:
            assert message_of(content)
        else:
            assert_same(found, (DOCUMENT, some_arrays()))


def test_every_single_byte_matters_or_changes_nothing(path):
    arrays = {"x": np.arange(3, dtype=np.int16), "y": np.array(True)}
    write(path, {"a": [1]}, arrays)
    good = path.read_bytes()
    same = 0
    for place in range(len(good)):
        for bit in (1, 2, 128):
            content = bytearray(good)
            content[place] ^= bit
            path.write_bytes(content)
            try:
                found = read(path)
            except ModelFileError:
                continue
            assert_same(found, ({"a": [1]}, arrays))
            same += 1
    assert same <= 8  # padding alone may change, from one kind of blank to another
