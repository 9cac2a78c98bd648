"""cragside inside other programs."""
