"""The `cragside` command."""
