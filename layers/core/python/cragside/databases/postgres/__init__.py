"""PostgreSQL: connections that are made when they are needed, and what their failures mean."""
