"""A tour of every route, over a corpus that comes with the package."""
