"""Connections to Neo4j."""
