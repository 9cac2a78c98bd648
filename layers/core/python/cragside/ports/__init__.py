"""What the application needs from the outside, one role a file, with the agent contract's method names."""
