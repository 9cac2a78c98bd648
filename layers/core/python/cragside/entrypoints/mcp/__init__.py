"""The Model Context Protocol: cragside's routes as tools, and its documents as resources."""
