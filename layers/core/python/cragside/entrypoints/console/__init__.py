"""The web console: static files, which use the public routes and nothing else."""
