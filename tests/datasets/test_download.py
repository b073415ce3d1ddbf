"""Downloads from a server on loopback that cuts, refuses, forgets ranges or changes its file."""

import socket

import pytest

from tartree.datasets import fetch_uci, uci, uci_names
from tartree.datasets.download import download


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("tartree.datasets.download.time.sleep", lambda seconds: None)


def fetched(server, folder, **options):
    folder.mkdir(exist_ok=True)
    partial = download(server.url, folder, **options)
    return partial.path.read_bytes()


def test_fetch(server, tmp_path):
    steps = []
    index = fetch_uci(url=server.url, folder=tmp_path / "cache", progress=lambda *step: steps.append(step))
    assert index.source == server.url
    assert index == uci.uci_index(tmp_path / "cache")
    size = len(server.content)
    assert steps[0] == ("download", 0, size)
    assert ("download", size, size) in steps
    assert steps[-1] == ("unpack", 3, 3)
    assert {path.name for path in (tmp_path / "cache" / "uci").iterdir()} == {"lock", "index.json", index.state}


@pytest.mark.parametrize("version", [{"ETag": '"one"'}, {"Last-Modified": "Wed, 01 Jan 2014 00:00:00 GMT"}])
def test_a_cut_connection_goes_on(server, tmp_path, version):
    server.version, server.cuts = version, [100, 1, 200, 0, 300]
    assert fetched(server, tmp_path / "x") == server.content
    assert [request.get("Range") for request in server.requests] == [
        *(None, "bytes=100-", "bytes=101-", "bytes=301-", "bytes=301-", "bytes=601-")
    ]
    assert server.requests[1]["If-Range"] == next(iter(version.values()))


@pytest.mark.parametrize("version", [{}, {"ETag": 'W/"weak"'}])
def test_without_a_version_it_starts_anew(server, tmp_path, version):
    server.version, server.cuts = version, [100]
    assert fetched(server, tmp_path / "x") == server.content
    assert [request.get("Range") for request in server.requests] == [None, None]


def test_a_server_without_ranges(server, tmp_path):
    server.ranges, server.cuts = False, [100, 50]
    assert fetched(server, tmp_path / "x") == server.content
    assert len(server.requests) == 3
    server.cuts = [100] * 20  # never beyond what was seen before: not tried for ever
    (tmp_path / "y").mkdir()
    with pytest.raises(OSError, match=r"the connection was cut after 100 of .* try again later"):
        download(server.url, tmp_path / "y")
    assert len(server.requests) == 3 + 5


def test_a_later_call_goes_on(server, tmp_path):
    server.cuts, server.statuses = [100], [200, 503, 503]
    with pytest.raises(OSError, match=r"503 Service Unavailable; try again later \(100 bytes are kept\)"):
        fetched(server, tmp_path / "x", pauses=[0])
    assert fetched(server, tmp_path / "x") == server.content
    assert server.requests[-1]["Range"] == "bytes=100-"
    assert fetched(server, tmp_path / "x") == server.content  # all there: the server only says so
    assert server.requests[-1]["Range"] == f"bytes={len(server.content)}-"


@pytest.mark.parametrize("honours", [True, False])
@pytest.mark.parametrize("kept", [100, None])
def test_a_changed_file_is_not_glued(server, tmp_path, honours, kept):
    old, server.honours_if_range = server.content, honours
    server.cuts, server.statuses = [kept], [200, 503]
    if kept:
        with pytest.raises(OSError, match="503"):
            fetched(server, tmp_path / "x", pauses=[0])
    else:
        server.statuses = []
        fetched(server, tmp_path / "x")
    server.content, server.version = old[::-1] + b"more", {"ETag": '"two"'}
    assert fetched(server, tmp_path / "x") == server.content


def test_another_address_is_not_glued(server, tmp_path):
    server.cuts, server.statuses = [100], [200, 503]
    with pytest.raises(OSError, match="503"):
        fetched(server, tmp_path / "x", pauses=[0])
    server.url += "?other"
    assert fetched(server, tmp_path / "x") == server.content
    assert "Range" not in server.requests[-1]


def test_a_server_that_says_no_length(server, tmp_path):
    server.says_length = False
    assert fetched(server, tmp_path / "x") == server.content


@pytest.mark.parametrize("status", [404, 403, 410])
def test_refused(server, tmp_path, status):
    server.statuses = [status]
    with pytest.raises(OSError, match=f"{server.url} cannot be downloaded: the server answered {status}") as caught:
        fetch_uci(url=server.url, folder=tmp_path)
    assert "\n" not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
def test_transient(server, tmp_path, status):
    server.statuses = [status] * 4
    assert fetched(server, tmp_path / "x") == server.content
    server.statuses = [status] * 5
    (tmp_path / "y").mkdir()
    with pytest.raises(OSError, match=f"the server answered {status} .*; try again later$"):
        download(server.url, tmp_path / "y")


def test_nobody_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(OSError, match=r"timed out; try again later$"):
            download(address, tmp_path, timeout=0.05, pauses=[0])
    with pytest.raises(OSError, match=r"refused; try again later$"):
        download(address, tmp_path, pauses=[0])


@pytest.mark.parametrize("url", ["file:///etc/passwd", "data.tar.gz", "http://", "ftp://host/x"])
def test_wrong_addresses(tmp_path, url):
    with pytest.raises(ValueError, match=r"must begin with http:// or https://, got .*; for a file, use --from"):
        fetch_uci(url=url, folder=tmp_path)
    with pytest.raises(ValueError, match="must be well formed"):
        fetch_uci(url="http://127.0.0.1:1/a b", folder=tmp_path)


def test_a_damaged_archive_is_not_kept(server, tmp_path):
    whole = server.content
    server.content = whole[:-9]
    with pytest.raises(ValueError, match=f"^{server.url} must be a complete tar archive"):
        fetch_uci(url=server.url, folder=tmp_path)
    server.content = whole
    fetch_uci(url=server.url, folder=tmp_path)
    assert len(uci_names(tmp_path)) == 3


def test_an_interrupt_after_the_download_keeps_it(server, tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(uci, "write_set", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch_uci(url=server.url, folder=tmp_path)
    monkeypatch.undo()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    fetch_uci(url=server.url, folder=tmp_path)
    assert server.requests[-1]["Range"] == f"bytes={len(server.content)}-"
    assert len(uci_names(tmp_path)) == 3
