"""`python -m tartree.cli` runs the command line."""

from tartree.cli import main

main(prog_name="tartree")
