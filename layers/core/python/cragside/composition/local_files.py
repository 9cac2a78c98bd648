"""What finds, names and reads the files of this machine, for the many commands that take files."""

from cragside.adapters.documents.folders import (
    FoundFile,
    Refused,
    find_files,
    path_of,
    read_file,
    root_of,
    source_name,
    source_of,
)
from cragside.adapters.documents.kinds import SUPPORTED
from cragside.adapters.documents.languages import LANGUAGES
from cragside.adapters.documents.markdown_syntax import title_of
from cragside.adapters.documents.reading import EMPTY, NEEDS_OCR, is_no_mistake

__all__ = [
    "EMPTY",
    "LANGUAGES",
    "NEEDS_OCR",
    "SUPPORTED",
    "FoundFile",
    "Refused",
    "find_files",
    "is_no_mistake",
    "path_of",
    "read_file",
    "root_of",
    "source_name",
    "source_of",
    "title_of",
]
