"""Queues, tokens, preferences and logs in files of this machine."""
