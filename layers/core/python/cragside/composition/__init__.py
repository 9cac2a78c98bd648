"""What the container is made of, and which adapters the command line uses without one."""
