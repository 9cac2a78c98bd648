"""Report which tests of the compose file ran, and which could not."""

SAID: list[str] = []
NEVER = (
    "the upstream images of Neo4j, SearXNG, Ollama and MiniStack: their tags, entry points and users; what ran in "
    "their place was built from Maven, PyPI and Ollama's source",
    "Python's own base image: cragside's image was built on Debian's Python",
    "the profile gpu: this needs an NVIDIA card; its part of the file was only parsed",
    "grading by a model: the embedded grader did it, because the tests' model is too small",
    "pulling models: the models were in place, as at a second start",
    "SearXNG's results: its containers had no way to a search engine",
    "arm64",
)


def say(line: str) -> None:
    """One line, now and in the summary."""
    SAID.append(line)
    print(line, flush=True)
