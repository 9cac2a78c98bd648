"""Indexes texts: accept, cut, merge into the graph, and sweep out of it."""
