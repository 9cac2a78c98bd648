"""Queues of indexing tasks, in a file and in PostgreSQL."""
