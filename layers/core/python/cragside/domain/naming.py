"""Names for display, and labels that distinguish documents of one name."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator

# Of more documents of one name than that, each is shown with its whole source: telling all of them apart takes long.
MOST_NAMESAKES = 200


def distinct_labels(
    name: str, sources: Collection[str], *, taken: Callable[[Collection[str]], Collection[str]]
) -> dict[str, str]:
    """A label for each source of one name: the name with as much of the source as makes it unique.

    For paths these are the nearest parent folders: "w1/todo.md" and "w2/todo.md". `taken` returns those of the given
    labels that other documents already have.
    """
    if len(sources) < 2:
        return dict.fromkeys(sources, name)
    labels = {source: in_full(name, source) for source in sources}
    waiting = {source: _longer(name, source) for source in sources}
    while waiting:
        tried = {source: longer for source, names in waiting.items() if (longer := next(names, None))}
        free = {longer for longer, times in Counter(tried.values()).items() if times == 1}
        free.difference_update(taken(free))
        labels.update((source, longer) for source, longer in tried.items() if longer in free)
        waiting = {source: waiting[source] for source, longer in tried.items() if longer not in free}
    return labels


def names_below(path: str) -> list[str]:
    """Every name that a file has below one of its parent folders, shortest first: "c", "b/c", "a/b/c" for "/a/b/c"."""
    name = path.rpartition("/")[2]
    return [name, *_longer(name, path)]


def in_full(name: str, source: str) -> str:
    """The name with the whole source, unless the source ends with the name."""
    if source == name or source.endswith(f"/{name}"):
        return source
    return f"{name} ({source})"


def _longer(name: str, source: str) -> Iterator[str]:
    """The name with one, two, ... of its parent folders. Nothing if the source is not a path to it."""
    if not source.endswith(f"/{name}"):
        return
    for folder in reversed(source.removesuffix(f"/{name}").split("/")):
        if folder:
            name = f"{folder}/{name}"
            yield name
