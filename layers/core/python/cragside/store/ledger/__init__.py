"""The catalogue of a workspace: its statements, written once, and a driver for each database."""
