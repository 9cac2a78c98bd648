"""The halves of a set of questions: one to develop with, and one for final figures alone."""

import argparse
import logging
from collections.abc import Sequence

HALVES = ("development", "held-out")


def chosen(description: str | None, halves: Sequence[str] = HALVES) -> argparse.Namespace:
    """Read the half from the command line, and if each question that went wrong is to be printed (`missed`)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=halves, default=halves[0])
    parser.add_argument("--missed", action="store_true", help="print each question that went wrong")
    logging.disable(logging.WARNING)
    return parser.parse_args()
