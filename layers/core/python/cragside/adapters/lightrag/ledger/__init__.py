"""What a workspace stores about its documents: the interface, its values, and its implementation on SQLite."""
