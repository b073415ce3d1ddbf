"""The command line `tartree`: a group of the commands in the folder `commands`.

Only click is imported here: torch, scikit-learn, pyarrow and rich take seconds, which `--help` should not wait for.
"""

from __future__ import annotations

import click

from tartree import __version__
from tartree.cli.command_group import CommandGroup, debug_option
from tartree.cli.commands import COMMANDS

_OVERVIEW = "\n".join(f"tartree {entry.example:<36}  {entry.purpose}" for entry in COMMANDS)


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=f"Accurate and readable trees for tables.\n\n\b\n{_OVERVIEW}",
)
@click.version_option(__version__, prog_name="tartree")
@debug_option
def main() -> None:
    """Run a command."""


for _entry in COMMANDS:
    main.add_command(_entry.command)
