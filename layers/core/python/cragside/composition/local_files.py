"""Files of this machine for the command line: what finds them, names them, tells their types and reads them."""

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
from cragside.adapters.documents.headings import title_of
from cragside.adapters.documents.kinds import ENDINGS, SUPPORTED, named_kind, unsupported
from cragside.adapters.documents.languages import LANGUAGES
from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.documents.reading import EMPTY

__all__ = [
    "EMPTY",
    "ENDINGS",
    "LANGUAGES",
    "SUPPORTED",
    "FileLoader",
    "FoundFile",
    "Refused",
    "find_files",
    "named_kind",
    "path_of",
    "read_file",
    "root_of",
    "source_name",
    "source_of",
    "title_of",
    "unsupported",
]
