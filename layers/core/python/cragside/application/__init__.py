"""Use cases: doers with one verb each."""
