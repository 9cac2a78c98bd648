"""The shares of stores that databases outside of PostgreSQL hold."""
