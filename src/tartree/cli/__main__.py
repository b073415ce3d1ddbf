from tartree.cli import main

main(prog_name="tartree")
