"""Stores in SQLite files: the ledger's tables, and LightRAG's storages beside them.

LightRAG's own file storages rewrite whole JSON files, scan lists for each lookup and load everything at start. These
keep a query's cost nearly flat as the store grows, survive a kill in mid-write, and can be read while another process
writes.
"""
