"""Reading documents into texts to index."""
