"""LightRAG's storages on one SQLite file a workspace.

LightRAG's own file storages rewrite whole JSON files, scan lists for each lookup and load everything at start. These
keep a query's cost nearly flat as the store grows, survive a kill in mid-write, and can be read while another process
writes.
"""
