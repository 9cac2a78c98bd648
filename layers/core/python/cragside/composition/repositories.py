"""Git repositories as files that can be indexed."""

from cragside.adapters.git import cloned, files_of, paths_of

__all__ = ["cloned", "files_of", "paths_of"]
