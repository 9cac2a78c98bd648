"""Steps of indexing a text: accept, cut, merge into the graph, move, and sweep out of it."""
