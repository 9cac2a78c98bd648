"""What happens to a text: accepted, cut, merged into the graph, moved, and swept out of it."""
