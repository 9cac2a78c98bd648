"""Pages from the web, behind a guard."""
