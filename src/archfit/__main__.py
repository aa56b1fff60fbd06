"""`python -m archfit`: the same as the `archfit` command, also from a bare checkout."""

from archfit.cli.app import main

main()
