"""Use cases, one class each."""
