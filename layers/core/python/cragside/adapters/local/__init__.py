"""What one machine needs no server for."""
