"""A small archive with every layout of the official one, and a server on loopback that can misbehave."""

import io
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest


def table(X, labels, *, short_header=False, end="\n"):
    names = [f"f{place + 1}" for place in range(len(X[0]))]
    pairs = zip(X, labels, strict=True)
    header = "\t".join([*([] if short_header else [""]), *names, "clase"])
    rows = ["\t".join([str(number + 1), *map(str, row), str(label)]) for number, (row, label) in enumerate(pairs)]
    return (end.join([header, *rows]) + end).encode()


def lines(*parts):
    return "".join(" ".join(map(str, part)) + " \n" for part in parts).encode()


def describe(name, files, rows, features, classes):
    pairs = {"n_entradas": features, "n_clases": classes, "n_arquivos": len(files)}
    for place, (file, count) in enumerate(zip(files, rows, strict=True)):
        pairs |= {f"fich{place + 1}": file, f"n_patrons{place + 1}": count}
    return "".join(f"{key}= {value}\n" for key, value in pairs.items()).encode()


X_ONE = [[0.5, -1.25], [1e-3, 2.0], [3.0, 4.0], [5.5, 6.0], [7.0, 8.125], [9.0, 10.0]]
Y_ONE = [2, 0, 2, 0, 5, 5]
SPLITS = [([0, 1, 4, 2], [3, 5]), ([1, 2, 3, 5], [0, 4]), ([2, 3, 4, 1], [5, 0]), ([5, 4, 3, 2], [1, 0])]
FOLDS = lines(*(part for split in SPLITS for part in split))


def one_file(name, **options):
    """Six rows, three classes called 0, 2 and 5, and all the files one finds beside the data."""
    return {
        f"{name}/{name}.txt": describe(name, [f"{name}_R.dat"], [6], 2, 3),
        f"{name}/{name}_R.dat": table(X_ONE, Y_ONE, **options),
        f"{name}/conxuntos_kfold.dat": FOLDS,
        f"{name}/conxuntos.dat": lines([0, 1, 2], [5, 4, 3]),
        f"{name}/{name}.arff": b"@relation",
        f"{name}/{name}.m": b"load",
        f"{name}/le_datos.m": b"\xff\x00",
        f"{name}/{name}.names": b"",
    }


def standardised(seed, n_rows):
    X = np.random.default_rng(seed).normal(size=(n_rows, 3))
    return ((X - X.mean(0)) / X.std(0, ddof=1)).round(6)


def two_files(name, scale=1.0, shift=0.0):
    """Eight rows to train on and four to test on, which lack a class."""
    train, test = standardised(0, 8), standardised(1, 4) * scale + shift
    return {
        f"{name}/{name}.txt": describe(name, [f"{name}_train_R.dat", f"{name}_test_R.dat"], [8, 4], 3, 3),
        f"{name}/{name}_train_R.dat": table(train.tolist(), ["a", "b", "c", "a", "b", "c", "a", "b"]),
        f"{name}/{name}_test_R.dat": table(test.tolist(), ["b", "a", "b", "a"]),
        f"{name}/conxuntos.dat": lines([0, 1, 2, 3], [4, 5, 6, 7]),
        f"{name}/conxuntos_kfold.dat": lines(*([[0, 1], [2, 3]] * 4)),
    }


def make_tar(path, files, members=(), mode="w:gz", top=""):
    with tarfile.open(path, mode) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(top + name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        for entry in members:
            tar.addfile(entry)
    return path


@pytest.fixture(scope="session")
def all_files():
    return {**one_file("iris"), **one_file("wine", short_header=True), **two_files("monks-1", 3.0, 1.0)}


@pytest.fixture
def archive(tmp_path, all_files):
    return make_tar(tmp_path / "data.tar.gz", all_files)


class Server:
    """Serves `content`; `statuses` and `cuts` say what goes wrong at the next requests, `requests` what was asked."""

    def __init__(self, content):
        self.content, self.version = content, {"ETag": '"one"'}
        self.ranges, self.honours_if_range, self.says_length = True, True, True
        self.statuses, self.cuts, self.requests = [], [], []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.answer(self)

            def log_message(self, *arguments):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/data.tar.gz"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def answer(self, request):
        self.requests.append(dict(request.headers))
        status = self.statuses.pop(0) if self.statuses else 200
        body, extra, wanted = self.content, dict(self.version), request.headers.get("Range")
        if status != 200:
            body = b"no"
        elif wanted and self.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if not self.honours_if_range or request.headers["If-Range"] in self.version.values():
                if start >= len(body):
                    status, body, extra = 416, b"", {"Content-Range": f"bytes */{len(body)}"}
                else:
                    extra["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
                    status, body = 206, body[start:]
        request.send_response(status)
        for key, value in extra.items():
            request.send_header(key, value)
        if self.says_length:
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        cut = self.cuts.pop(0) if self.cuts else None
        request.wfile.write(body[:cut])

    def close(self):
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server(archive, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server(archive.read_bytes())
    yield running
    running.close()
