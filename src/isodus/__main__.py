"""python -m isodus: the command line tool."""

from .cli import app

app()
