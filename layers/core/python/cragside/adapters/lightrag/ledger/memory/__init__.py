"""The ledger of a workspace in memory. It lasts as long as its backend."""
