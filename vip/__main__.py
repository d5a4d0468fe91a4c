"""`python -m vip`."""

from vip.cli import main

main()
