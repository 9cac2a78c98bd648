"""What the resources of templates cost a month."""
