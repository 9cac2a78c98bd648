"""Keeps the folder of the stores: one that is written, or a baked one."""
