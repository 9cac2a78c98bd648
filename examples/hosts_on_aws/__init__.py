"""An example: PostgreSQL, Neo4j, Ollama and SearXNG on hosts of your own. docs/servers-on-aws.md describes it."""
