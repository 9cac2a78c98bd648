"""Corrective RAG as a LangGraph state machine. Nothing else in cragside imports LangGraph."""
