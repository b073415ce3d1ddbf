"""The way to a cluster: one that runs, or one on this machine for as long as it is needed."""

from __future__ import annotations

import os
import shlex
import socket
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

EXTRA = "a cluster needs Ray: pip install 'tartree[ray]'"


def import_ray() -> Any:
    """The module `ray`, or one line that names the extra."""
    try:
        import ray
    except ImportError as error:
        raise ImportError(EXTRA) from error
    return ray


@contextmanager
def connected(
    address: str = "auto", modules: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """The module `ray`, connected to a cluster; the connection ends with the block, unless it was there before.

    Parameters
    ----------
    address : str, default="auto"
        "auto" is the cluster that this machine is part of, or the one that the environment names in ``RAY_ADDRESS``;
        "local" starts one on this machine alone; otherwise ``HOST:PORT`` of the head node. Where this process is
        connected already, "auto" is that connection.
    modules : sequence of str
        Folders of Python packages that the nodes do not have, to be sent to them.
    variables : mapping of str to str, optional
        Environment variables for the processes of this connection.

    Examples
    --------
    >>> from tartree.cluster import connected
    >>> with connected("local") as ray:  # doctest: +SKIP
    ...     ray.cluster_resources()["CPU"]
    """
    ray = import_ray()
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address not in ("auto", "local") and not (host and port.isdigit()):
        raise ValueError(f"address must be 'auto', 'local' or HOST:PORT, however: address={address!r}")
    if ray.is_initialized():
        _check_same(ray, address)
        yield ray
        return
    _connect(ray, address, modules, variables or {})
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str, modules: Sequence[str], variables: Mapping[str, str]) -> None:
    options: dict[str, Any] = {"logging_level": "warning", "log_to_driver": False}
    surroundings: dict[str, Any] = {}
    if modules:
        surroundings["py_modules"] = [os.path.abspath(folder) for folder in modules]
    if variables:
        surroundings["env_vars"] = dict(variables)
    surroundings |= quoted_python(address)
    if surroundings:
        options["runtime_env"] = surroundings
    if address == "local":  # ours alone: no page, and no word to anybody
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options["include_dashboard"] = False
    begin = "start one with `ray start --head`, or give the address 'local' for one on this machine"
    if address not in ("auto", "local"):  # Ray itself would try for minutes
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            raise ConnectionError(f"no cluster answers at {address} ({error}); {begin}") from error
    try:
        ray.init(address=address, **options)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        text = " ".join(str(error).split())
        if "Could not find any running Ray instance" in text:
            raise ConnectionError(f"no cluster was found here; {begin}") from error
        raise ConnectionError(
            f"the cluster does not let this process in: {text}; look whether it still runs, and whether RAY_AUTH_TOKEN "
            "holds its token"
        ) from error


def quoted_python(address: str) -> dict[str, str]:
    """The interpreter as part of a `runtime_env`, if its path needs quotes and the cluster is on this machine.

    Ray starts workers by a line for bash into which it writes the path as it is: with a space, no worker ever starts.
    A cluster elsewhere has paths of its own.
    """
    quoted = shlex.quote(sys.executable)
    if os.name == "nt" or quoted == sys.executable:
        return {}
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", "local")
    if address in ("auto", "local"):
        return {"py_executable": quoted}
    try:
        is_here = socket.gethostbyname(address.removeprefix("ray://").rpartition(":")[0]) in _own_addresses()
    except OSError:
        is_here = False
    return {"py_executable": quoted} if is_here else {}


def _check_same(ray: Any, address: str) -> None:
    here = ray.get_runtime_context().gcs_address
    if address not in ("auto", "local", here) and not _is_same_place(address.removeprefix("ray://"), here):
        raise ValueError(
            f"address must be that of the cluster that this process is connected to, {here}, however: "
            f"address={address!r}; call ray.shutdown() first"
        )


def _is_same_place(address: str, here: str) -> bool:
    """Whether an address is another name of one that has numbers: Ray replaces names such as localhost."""
    (host, _, port), (own_host, _, own_port) = address.rpartition(":"), here.rpartition(":")
    try:
        found = socket.gethostbyname(host)
    except OSError:
        return False
    own_names = {own_host, "127.0.0.1"} if own_host in _own_addresses() else {own_host}
    return port == own_port and found in own_names


def _own_addresses() -> set[str]:
    from ray.util import get_node_ip_address

    return {get_node_ip_address(), "127.0.0.1"}


def count_slots(ray: Any, cpus: float, gpus: float) -> int:
    """How many tasks of so many cores and GPUs the cluster, as it is now, can run at once."""
    there = ray.cluster_resources()
    shares = [there.get(name, 0.0) / each for name, each in (("CPU", cpus), ("GPU", gpus)) if each]
    return int(min(shares)) if shares else 1


def noted(error: Exception) -> Exception:
    """The error of a worker, with a note for tracebacks that says where it came from."""
    places = "".join(traceback.format_tb(error.__traceback__))
    error.add_note(f"This was raised by a worker, where it came from:\n{places}")
    return error


def original(error: Exception) -> Exception:
    """What a function raised elsewhere, without what Ray has wrapped around it."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else error
