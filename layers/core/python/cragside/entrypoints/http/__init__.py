"""cragside's own routes, as a FastAPI application."""
