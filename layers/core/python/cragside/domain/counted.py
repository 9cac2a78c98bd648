"""Numbers of things in sentences."""


def counted(number: int, noun: str) -> str:
    """The number and the noun, in the plural unless the number is 1: `counted(2, "page")` is "2 pages"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
