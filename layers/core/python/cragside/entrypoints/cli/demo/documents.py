"""The demo's documents, written for it; they come with the package."""

from importlib.resources import files

from cragside.composition.local_files import title_of
from cragside.domain.document import SourceText


def corpus() -> list[SourceText]:
    """Short texts about real things, many of which share their name with another; one carries an injection attempt."""
    folder = files(__package__) / "corpus"
    entries = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".md")), key=lambda entry: entry.name)
    texts = ((entry.name, entry.read_text("utf-8")) for entry in entries)
    return [SourceText(name=name, text=text, title=title_of(name, text)) for name, text in texts]
