"""Prints docs/compliance.md: python -m infra.compliance > docs/compliance.md."""

import sys

from infra.compliance.page import page

if __name__ == "__main__":
    sys.stdout.write(page())
