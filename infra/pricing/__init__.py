"""Monthly costs of the resources of templates."""
