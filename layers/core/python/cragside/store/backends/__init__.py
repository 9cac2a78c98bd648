"""The databases in which workspaces can be kept."""
