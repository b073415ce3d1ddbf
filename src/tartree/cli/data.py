"""`tartree data uci`: fetch the UCI sets, and say which are there, missing or odd."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tartree.cli.errors import counted, listed
from tartree.cli.notes import Notes
from tartree.cli.reporting import show_facts

if TYPE_CHECKING:
    from rich.console import Console

    from tartree.datasets import UciIndex
    from tartree.datasets.uci import Progress

MOST_NAMES = 121
GROUPS = ("large", "medium", "small")


def describe_uci(
    archive: str | None, url: str | None, folder: str | None, *, only_list: bool, notes: Notes
) -> dict[str, Any]:
    """What is there as plain data for JSON, after fetching it if it was asked for or if nothing is there."""
    from tartree.datasets import uci_index
    from tartree.datasets.cache import DamagedCache, cache_folder

    if only_list and (archive or url):
        raise click.UsageError("--list shows what is there; leave it out to fetch --from a file or a --url")
    if archive and url:
        raise click.UsageError("--from FILE and --url URL both say where the sets come from; give one of them")
    before = index = None
    try:
        before = uci_index(folder)
    except FileNotFoundError as error:
        if only_list:
            raise
        if isinstance(error, DamagedCache):
            notes.say(f"{error.__cause__}; all sets are fetched anew.")
    if not (archive or url):
        index, before = before, None
    if index is None:
        index = _fetch(archive, url, folder, notes)
    return {"folder": os.fspath(cache_folder(folder)), **_describe(index), "replaced": _compare(before, index)}


def _compare(before: UciIndex | None, after: UciIndex) -> dict[str, Any] | None:
    """What was there until now, all of which a fetch replaces."""
    if before is None:
        return None
    gone = sorted(before.sets.keys() - after.sets.keys())
    return {"source": before.source, "sets": len(before.sets), "gone": gone}


def _fetch(archive: str | None, url: str | None, folder: str | None, notes: Notes) -> UciIndex:
    from tartree.datasets import OFFICIAL_URL, fetch_uci

    if not archive:
        notes.say(f"Downloading {url or OFFICIAL_URL} ...")
    with _bars(notes) as progress:
        return fetch_uci(archive, url=url or OFFICIAL_URL, folder=folder, progress=progress)


@contextmanager
def _bars(notes: Notes) -> Iterator[Progress]:
    """A bar for each step, in bytes where it downloads; all vanish at the end."""
    if not notes.shows_progress:
        yield lambda step, there, total: None
        return
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(step: str, there: int, total: int | None) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total)
            size = decimal if step == "download" else str
            text = f"{step}: {size(there)}" + (f" of {size(total)}" if total is not None else "")
            bar.update(tasks[step], completed=there, total=total, description=text)

        yield show


def _describe(index: UciIndex) -> dict[str, Any]:
    from tartree.datasets import OFFICIAL

    sets = [
        {
            "name": name,
            "rows": one.rows,
            "features": one.features,
            "classes": one.classes,
            "group": one.group,
            "splits": "fixed" if one.fixed_test else "four",
            "notes": list(one.notes),
        }
        for name, one in index.sets.items()
    ]
    known = index.sets.keys() | index.failed.keys()
    return {
        "source": index.source,
        "sha256": index.sha256,
        "groups": {group: sum(one["group"] == group for one in sets) for group in GROUPS},
        "sets": sets,
        "missing": [name for name in OFFICIAL if name not in known],
        "others": sorted(known - set(OFFICIAL)),
        "failed": dict(index.failed),
        "skipped": list(index.skipped),
    }


def show_uci(console: Console, found: dict[str, Any]) -> None:
    """The same for people."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for column in ("rows", "features", "classes"):
        table.add_column(column, justify="right")
    for column in ("group", "splits", "notes"):
        table.add_column(column)
    for one in found["sets"]:
        numbers = (f"{one[key]:,}" for key in ("rows", "features", "classes"))
        table.add_row(one["name"], *numbers, one["group"], one["splits"], "below" if one["notes"] else "")
    console.print(table)
    odd = {one["name"]: "; ".join(one["notes"]) for one in found["sets"] if one["notes"]}
    if odd:
        show_facts(console, odd)
        console.print()
    facts = {
        "folder": found["folder"],
        "source": found["source"] + (f", sha256 {found['sha256']}" if found["sha256"] else ""),
        "there": f"{counted(len(found['sets']), 'set')}: "
        + ", ".join(f"{number} {group}" for group, number in found["groups"].items()),
        "missing": listed(found["missing"], MOST_NAMES) or "none",
        "odd": f"{counted(len(odd), 'set')}; the notes above say why" if odd else "none",
    }
    if replaced := found["replaced"]:
        gone = f"; no longer there: {listed(replaced['gone'], MOST_NAMES)}" if replaced["gone"] else ""
        facts["replaced"] = f"{counted(replaced['sets'], 'set')} from {replaced['source']}{gone}"
    if found["others"]:
        facts["others"] = f"not among the 121: {listed(found['others'], MOST_NAMES)}"
    if found["skipped"]:
        facts["left out"] = listed(found["skipped"])
    show_facts(console, facts)
    for name, reason in found["failed"].items():
        show_facts(console, {"failed": f"{name}: {reason}"})
