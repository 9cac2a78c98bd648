"""Files of this machine for the command line: what finds them, names them and tells their types."""

from cragside.adapters.documents.folders import source_name, source_of
from cragside.adapters.documents.headings import title_of

__all__ = ["source_name", "source_of", "title_of"]
