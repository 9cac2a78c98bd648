"""The ledger of a workspace in PostgreSQL."""
