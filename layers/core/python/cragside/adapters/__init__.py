"""The outside world behind the ports, one technology a folder."""
