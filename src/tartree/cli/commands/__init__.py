"""The commands, one module each; `COMMANDS` is the one list of them, in the order of `tartree --help`."""

from tartree.cli.commands import data, demo, fit, inspect, predict, report, search, zoo

COMMANDS = tuple(module.ENTRY for module in (demo, fit, search, predict, inspect, report, zoo, data))
