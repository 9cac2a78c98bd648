"""The ledger of a workspace in one SQLite file."""
