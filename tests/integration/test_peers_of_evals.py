"""LightRAG's own server, as the evals ask it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "evals"))

from peers import MODES, SPLITTING, lightrag

from cragside.domain.evidence import Document

pytestmark = pytest.mark.services

KEEPER = "Grace Darling kept the Longstone Lighthouse together with William Darling."
BOAT = "The boat of Grace Darling is shown in a museum at Bamburgh."
SWAN = "Joseph Swan lit the first house by electric light."


def test_lightrag_finds_the_passages_that_it_was_given_in_each_mode() -> None:
    given = [("darling.md", KEEPER), ("darling.md", BOAT), ("swan.md", SWAN)]
    texts = [Document(text, text, "local", metadata={"filename": name}) for name, text in given]
    with lightrag(texts, **SPLITTING) as modes:
        assert tuple(modes) == MODES
        for search in modes.values():
            found = search("In which museum is the boat of Grace Darling shown?")
            assert (found[0].metadata["filename"], found[0].content) == given[1]
            assert {(each.metadata["filename"], each.content) for each in found} <= set(given)
