"""Git repositories for the command line."""

from cragside.adapters.git.checkout import Checkout, RepositoryFile, cloned, files_of, paths_of

__all__ = ["Checkout", "RepositoryFile", "cloned", "files_of", "paths_of"]
