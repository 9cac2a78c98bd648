"""Builds the Lambda layers: `python -m layers.lightrag.build`."""
