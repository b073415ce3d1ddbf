"""Commands that messages and pages suggest: each must be one that the command line takes.

In messages, a suggested command is the rest of its line: a line of its own with two spaces before it, or behind a
colon. `tests.cli.conftest.run` checks the output of every command that a test runs.
"""

import re
import shlex

import click

from tartree.cli import main

NAMES = "|".join(main.commands)
SUGGESTED = re.compile(rf"(?:^  |: )(tartree (?:{NAMES})\b.*)$", re.MULTILINE)
MENTIONED = re.compile(rf"\btartree (?:{NAMES})\b")


def suggested_commands(text):
    """Commands of a message, as they are written."""
    found = SUGGESTED.findall(text)
    assert len(found) == len(MENTIONED.findall(text)), f"a suggested command must end its line: {text}"
    return found


def parse(command):
    """Parse a command with the options of the command line, without running it; a usage error is raised."""
    words = shlex.split(command, comments=True)
    assert words.pop(0) == "tartree"
    taken = main
    while isinstance(taken, click.Group):
        taken = taken.commands[words[0]]
        name = words.pop(0)
    taken.make_context(name, words)


def check_suggestions(text):
    """Raise unless every command that a message suggests can be parsed; returns them."""
    found = suggested_commands(text)
    for command in found:
        try:
            parse(command)
        except click.ClickException as error:
            raise AssertionError(f"a command is suggested that is none: {command}: {error.format_message()}") from error
    return found
