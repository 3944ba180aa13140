"""`python -m amux`."""

from amux.cli import main

main()
