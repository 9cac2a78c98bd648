"""The models that need no server: WordLlama vectors, rule-based language work, a calibrated grader."""
