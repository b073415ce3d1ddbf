"""Commands in messages and pages: each must be accepted by the command line.

In messages, a suggested command ends its line: it is a separate line after two spaces, or follows a colon.
`tests.cli.conftest.run` checks the output of every command that a test runs.
"""

import re
import shlex

import click

from tartree.cli import main

NAMES = "|".join(main.commands)
SUGGESTED = re.compile(rf"(?:^  |: )(tartree (?:{NAMES})\b.*)$", re.MULTILINE)
MENTIONED = re.compile(rf"\btartree (?:{NAMES})\b")


def suggested_commands(text):
    """Return the commands of a message."""
    commands = SUGGESTED.findall(text)
    assert len(commands) == len(MENTIONED.findall(text)), f"a suggested command must end its line: {text}"
    return commands


def parse(command):
    """Parse a command without running it; raise usage errors."""
    arguments = shlex.split(command, comments=True)
    assert arguments.pop(0) == "tartree"
    taken = main
    while isinstance(taken, click.Group):
        name = arguments.pop(0)
        taken = taken.commands[name]
    taken.make_context(name, arguments)


def check_suggestions(text):
    """Parse every command of a message, and return them."""
    commands = suggested_commands(text)
    for command in commands:
        try:
            parse(command)
        except click.ClickException as error:
            raise AssertionError(f"invalid command suggested: {command}: {error.format_message()}") from error
    return commands
