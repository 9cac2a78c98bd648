"""Names that people are shown, and what tells documents of one name apart."""

from collections.abc import Callable, Collection, Iterator


def told_apart(name: str, source: str, others: Collection[str], *, is_taken: Callable[[str], bool]) -> str:
    """The name with as much of the source as tells it from `others`, the sources of other documents of that name.

    Of a path these are the nearest parent folders: "w1/todo.md" and "w2/todo.md". `is_taken` says of such a longer name
    whether another document is called so.
    """
    if not others or source == name:
        return name
    for longer in _longer(name, source):
        if not any(_ends(other, longer) for other in others) and not is_taken(longer):
            return longer
    return source if _ends(source, name) else f"{name} ({source})"


def names_below(path: str) -> list[str]:
    """Every name that a file has below one of its parent folders, shortest first: "c", "b/c", "a/b/c" for "/a/b/c"."""
    name = path.rpartition("/")[2]
    return [name, *_longer(name, path)]


def _longer(name: str, source: str) -> Iterator[str]:
    """The name with one more of its parent folders at a time. Nothing when the source is no path to it."""
    if not _ends(source, name):
        return
    for folder in reversed(source.removesuffix(name).strip("/").split("/")):
        if folder:
            name = f"{folder}/{name}"
            yield name


def _ends(path: str, name: str) -> bool:
    return path == name or path.endswith(f"/{name}")
