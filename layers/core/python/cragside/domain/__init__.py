"""What cragside is about, in the standard library alone: queries, documents, verdicts, prompts, errors."""
