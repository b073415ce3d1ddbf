"""`tartree data`: fetch public data sets and list them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tartree.cli import options as shared
from tartree.cli.command_group import CommandEntry, debug_option
from tartree.cli.rendering.console import make_console, print_json, show_facts
from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.phrases import counted, listed

if TYPE_CHECKING:
    from rich.console import Console

    from tartree.datasets import UciIndex
    from tartree.datasets.uci import Progress

MOST_NAMES = 121
GROUPS = ("large", "medium", "small")


@click.group()
@debug_option
def data() -> None:
    """Fetch public data to compare models on."""


@data.command()
@click.option("--from", "archive", metavar="FILE", help="An archive that is here already, or a folder unpacked of it.")
@click.option("--url", metavar="URL", help="Where to download the archive, in place of its official address.")
@click.option("--folder", metavar="DIR", help="Where the sets are kept; by default TARTREE_DATA, or the user's cache.")
@click.option("--list", "only_list", is_flag=True, help="Show what is there, and fetch nothing.")
@shared.json_option()
@debug_option
def uci(archive: str | None, url: str | None, folder: str | None, only_list: bool, as_json: bool) -> None:
    """Fetch the 121 UCI sets of Fernandez-Delgado et al. (2014), and list them.

    Downloads them if they are not there yet, and resumes a download that was cut off. Load one in Python with
    tartree.datasets.load_uci(NAME).
    """
    description = _describe_uci(archive, url, folder, only_list=only_list, notes=Notes())
    if as_json:
        print_json(description)
    else:
        _show_uci(make_console(), description)


ENTRY = CommandEntry(data, "data uci", "121 data sets to compare models on")


def _describe_uci(
    archive: str | None, url: str | None, folder: str | None, *, only_list: bool, notes: Notes
) -> dict[str, Any]:
    """Return the sets as plain data for JSON; they are fetched on demand, or if there are none."""
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
    return {"folder": os.fspath(cache_folder(folder)), **_describe_index(index), "replaced": _compare(before, index)}


def _compare(before: UciIndex | None, after: UciIndex) -> dict[str, Any] | None:
    """Return the sets that a fetch has replaced, all of them."""
    if before is None:
        return None
    gone = sorted(before.sets.keys() - after.sets.keys())
    return {"source": before.source, "sets": len(before.sets), "gone": gone}


def _fetch(archive: str | None, url: str | None, folder: str | None, notes: Notes) -> UciIndex:
    from tartree.datasets import OFFICIAL_URL, fetch_uci

    if not archive:
        notes.say(f"Downloading {url or OFFICIAL_URL} ...")
    with _progress_bars(notes) as progress:
        return fetch_uci(archive, url=url or OFFICIAL_URL, folder=folder, progress=progress)


@contextmanager
def _progress_bars(notes: Notes) -> Iterator[Progress]:
    """Show a transient bar for each step, in bytes for the download."""
    if not notes.shows_progress:
        yield lambda step, done, total: None
        return
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(step: str, done: int, total: int | None) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total)
            size = decimal if step == "download" else str
            text = f"{step}: {size(done)}" + (f" of {size(total)}" if total is not None else "")
            bar.update(tasks[step], completed=done, total=total, description=text)

        yield show


def _describe_index(index: UciIndex) -> dict[str, Any]:
    from tartree.datasets import OFFICIAL

    sets = [
        {
            "name": name,
            "rows": record.rows,
            "features": record.features,
            "classes": record.classes,
            "group": record.group,
            "splits": "fixed" if record.fixed_test else "four",
            "notes": list(record.notes),
        }
        for name, record in index.sets.items()
    ]
    names = index.sets.keys() | index.failed.keys()
    return {
        "source": index.source,
        "sha256": index.sha256,
        "groups": {group: sum(record["group"] == group for record in sets) for group in GROUPS},
        "sets": sets,
        "missing": [name for name in OFFICIAL if name not in names],
        "others": sorted(names - set(OFFICIAL)),
        "failed": dict(index.failed),
        "skipped": list(index.skipped),
    }


def _show_uci(console: Console, description: dict[str, Any]) -> None:
    from rich.table import Table

    sets = description["sets"]
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for column in ("rows", "features", "classes"):
        table.add_column(column, justify="right")
    for column in ("group", "splits", "notes"):
        table.add_column(column)
    for record in sets:
        numbers = (f"{record[key]:,}" for key in ("rows", "features", "classes"))
        table.add_row(record["name"], *numbers, record["group"], record["splits"], "below" if record["notes"] else "")
    console.print(table)
    odd = {record["name"]: "; ".join(record["notes"]) for record in sets if record["notes"]}
    if odd:
        show_facts(console, odd)
        console.print()
    show_facts(console, _summary(description, len(odd)))
    for name, reason in description["failed"].items():
        show_facts(console, {"failed": f"{name}: {reason}"})


def _summary(description: dict[str, Any], n_odd: int) -> dict[str, str]:
    sha256 = description["sha256"]
    groups = ", ".join(f"{number} {group}" for group, number in description["groups"].items())
    facts = {
        "folder": description["folder"],
        "source": description["source"] + (f", sha256 {sha256}" if sha256 else ""),
        "present": f"{counted(len(description['sets']), 'set')}: {groups}",
        "missing": listed(description["missing"], MOST_NAMES) or "none",
        "odd": f"{counted(n_odd, 'set')}; the notes above say why" if n_odd else "none",
    }
    if replaced := description["replaced"]:
        gone = f"; no longer present: {listed(replaced['gone'], MOST_NAMES)}" if replaced["gone"] else ""
        facts["replaced"] = f"{counted(replaced['sets'], 'set')} from {replaced['source']}{gone}"
    if description["others"]:
        facts["others"] = f"not among the 121: {listed(description['others'], MOST_NAMES)}"
    if description["skipped"]:
        facts["left out"] = listed(description["skipped"])
    return facts
