"""What stacks are composed of. Constructs take plain keywords, not the environment."""
