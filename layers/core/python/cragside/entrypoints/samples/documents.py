"""The sample documents, written for this, and questions that they answer."""

from importlib.resources import files
from importlib.resources.abc import Traversable

from cragside.composition.files import title_of
from cragside.domain.document import SourceText

# The first is told apart from its namesakes, the second needs two documents, the third is German.
QUESTIONS = (
    "Why did Mercury's orbit puzzle astronomers?",
    "What did Armstrong build at Cragside?",
    "Brauche ich für eine Wärmepumpe eine Fußbodenheizung?",
)


def corpus() -> list[SourceText]:
    """Short texts about real things, many of which share their name with another; one carries an injection attempt."""
    texts = ((entry.name, entry.read_text("utf-8")) for entry in _entries())
    return [SourceText(name=name, text=text, title=title_of(name, text), file_type="md") for name, text in texts]


def count() -> int:
    """The number of the texts."""
    return len(_entries())


def _entries() -> list[Traversable]:
    folder = files(__package__) / "corpus"
    return sorted((entry for entry in folder.iterdir() if entry.name.endswith(".md")), key=lambda entry: entry.name)
