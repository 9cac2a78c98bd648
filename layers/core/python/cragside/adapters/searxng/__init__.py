"""Web search by a SearXNG instance."""
