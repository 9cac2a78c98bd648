"""The settings, read from the environment in one place and frozen. docs/configuration.md describes each."""

from cragside.settings.loading import load_settings
from cragside.settings.model import Settings, variable_of
from cragside.settings.values import BucketAddress

__all__ = ["BucketAddress", "Settings", "load_settings", "variable_of"]
