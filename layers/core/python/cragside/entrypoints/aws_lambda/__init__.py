"""Lambda functions for requests and for indexing. Importing this package imports neither LightRAG nor LangGraph."""
