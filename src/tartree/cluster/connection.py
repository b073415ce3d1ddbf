"""Connection to a cluster: one that runs, or a local one for as long as it is needed."""

from __future__ import annotations

import os
import shlex
import socket
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def connected(
    address: str = "auto", modules: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """Connect to a cluster; the connection ends with the block, unless this process was connected before.

    Parameters
    ----------
    address : str, default="auto"
        "auto" is the cluster that this machine is part of, or the one in the environment variable ``RAY_ADDRESS``;
        "local" starts one on this machine; otherwise ``HOST:PORT`` of the head node. If this process is connected
        already, "auto" is that connection.
    modules : sequence of str, default=()
        Folders of Python packages that are sent to the nodes, for those that the nodes do not have.
    variables : mapping of str to str, optional
        Environment variables for the processes of this connection.

    Yields
    ------
    module
        `ray`, connected.

    Raises
    ------
    ImportError
        If Ray is not installed.
    ConnectionError
        If no cluster answers, or the cluster refuses this process.
    ValueError
        If the address is malformed, or this process is connected to another cluster.

    Examples
    --------
    >>> from tartree.cluster import connected
    >>> with connected("local") as ray:  # doctest: +SKIP
    ...     ray.cluster_resources()["CPU"]
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError("a cluster needs Ray: pip install 'tartree[ray]'") from error
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address not in ("auto", "local") and not (host and port.isdigit()):
        raise ValueError(f"address must be 'auto', 'local' or HOST:PORT, got {address!r}")
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
    environment: dict[str, Any] = {}
    if modules:
        environment["py_modules"] = [os.path.abspath(folder) for folder in modules]
    if variables:
        environment["env_vars"] = dict(variables)
    environment |= quoted_python(address)
    if environment:
        options["runtime_env"] = environment
    if address == "local":  # a private cluster: no dashboard, no usage statistics
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options["include_dashboard"] = False
    hint = "start one with `ray start --head`, or give the address 'local' for one on this machine"
    if address not in ("auto", "local"):  # Ray itself would try for minutes
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            raise ConnectionError(f"no cluster answers at {address} ({error}); {hint}") from error
    try:
        ray.init(address=address, **options)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        text = " ".join(str(error).split())
        if "Could not find any running Ray instance" in text:
            raise ConnectionError(f"no cluster runs on this machine; {hint}") from error
        raise ConnectionError(
            f"the cluster does not accept this process: {text}; check that it still runs, and that RAY_AUTH_TOKEN "
            "holds its token"
        ) from error


def quoted_python(address: str) -> dict[str, str]:
    """Return the interpreter as part of a `runtime_env`, if its path needs quotes and the cluster is on this machine.

    Ray starts workers by a bash command that holds the path without quotes: with a space, no worker ever starts. A
    cluster on other machines has other paths.
    """
    quoted = shlex.quote(sys.executable)
    if os.name == "nt" or quoted == sys.executable:
        return {}
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", "local")
    if address in ("auto", "local"):
        return {"py_executable": quoted}
    try:
        is_here = socket.gethostbyname(address.removeprefix("ray://").rpartition(":")[0]) in _local_addresses()
    except OSError:
        is_here = False
    return {"py_executable": quoted} if is_here else {}


def _check_same(ray: Any, address: str) -> None:
    """Raise if the process is connected to another cluster."""
    connected_address = ray.get_runtime_context().gcs_address
    if address in ("auto", "local", connected_address):
        return
    if not _is_same_address(address.removeprefix("ray://"), connected_address):
        raise ValueError(
            f"address must be that of the cluster that this process is connected to, {connected_address}, got "
            f"{address!r}; call ray.shutdown() first"
        )


def _is_same_address(address: str, numeric: str) -> bool:
    """Return whether an address is another name of a numeric one: Ray replaces names such as localhost."""
    (host, _, port), (numeric_host, _, numeric_port) = address.rpartition(":"), numeric.rpartition(":")
    try:
        resolved = socket.gethostbyname(host)
    except OSError:
        return False
    aliases = {numeric_host, "127.0.0.1"} if numeric_host in _local_addresses() else {numeric_host}
    return port == numeric_port and resolved in aliases


def _local_addresses() -> set[str]:
    """Return the addresses of this machine."""
    from ray.util import get_node_ip_address

    return {get_node_ip_address(), "127.0.0.1"}


def count_slots(ray: Any, cpus: float, gpus: float) -> int:
    """Count the tasks of so many cores and GPUs that the cluster, as it is now, can run at once."""
    resources = ray.cluster_resources()
    shares = [resources.get(name, 0.0) / each for name, each in (("CPU", cpus), ("GPU", gpus)) if each]
    return int(min(shares)) if shares else 1


def add_worker_traceback(error: Exception) -> Exception:
    """Add the traceback in the worker to an error as a note, which pickles keep."""
    lines = "".join(traceback.format_tb(error.__traceback__))
    error.add_note(f"Raised by a worker:\n{lines}")
    return error


def unwrap(error: Exception) -> Exception:
    """Return what a function raised in a worker, without Ray's wrapper."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else error
