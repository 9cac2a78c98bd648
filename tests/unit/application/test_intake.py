from pathlib import Path

from cragside.ports.page_fetcher import FetchedPage
from tests.knowledge import Knowledge

URL = "https://example.org/otter.txt"
# As a page in a Cyrillic encoding is served: nothing in its bytes says so.
CYRILLIC = FetchedPage(URL, "Выдра спит на спине.".encode("koi8-r"), "text/plain", charset="koi8-r")


async def test_a_page_is_read_in_the_encoding_that_its_server_names(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={URL: CYRILLIC})
    accepted = await knowledge.container.intake.page(URL, workspace="default")
    library = await knowledge.container.workspaces.library("default")
    source = await library.source(accepted.record.id)
    await knowledge.close()
    assert source is not None
    assert source.text == "Выдра спит на спине."
    assert source.metadata == {"fetchedUrl": URL, "contentType": "text/plain"}
