"""What holds for every test."""

from hypothesis import settings

# Tests assert no timings: an example may take its time on a busy machine.
settings.register_profile("cragside", deadline=None)
settings.load_profile("cragside")
