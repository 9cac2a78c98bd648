"""Open WebUI's filter shows passages."""

from cragside.plugins.open_webui_filter import _sources


def passage(identity: str, **more: object) -> dict[str, object]:
    return {"id": identity, "content": identity, "score": 0.9, "metadata": {}} | more


def test_each_passage_is_a_source_of_its_own() -> None:
    """Open WebUI counts the different ids, so that two passages of one page would share a number."""
    page = "https://example.org/lamp"
    sources = _sources([passage("a", url=page), passage("b", url=page, title="Lamp"), passage("c")])
    ids = [source["metadata"][0]["source"] for source in sources]
    assert ids == [f"{page}#passage-1", f"{page}#passage-2", "c"]
    assert [source["source"].get("url") for source in sources] == [page, page, None]
    assert [source["source"]["name"] for source in sources] == ["Passage 1", "Lamp", "Passage 3"]


def test_an_address_that_is_no_page_is_no_link() -> None:
    (source,) = _sources([passage("a", url="javascript:alert(1)")])
    assert source["source"] == {"id": "a", "name": "Passage 1"}
    assert source["metadata"] == [{"source": "a", "name": "Passage 1"}]


def test_marks_in_titles_and_addresses_stay_text_on_one_line() -> None:
    forged = "<script>alert(1)</script>\n# [1](javascript:x)\x1b[31m" + "x" * 9_000
    (source,) = _sources([passage("a", title=forged, url="https://example.org/\n[2](https://evil.example)")])
    name = source["source"]["name"]
    assert name.startswith("<script>alert(1)</script> # [1](javascript:x) [31mx")
    assert len(name) == 200
    assert source["source"]["id"] == "a"
    assert "url" not in source["source"]


def test_a_passage_that_was_not_graded_shows_its_similarity() -> None:
    (source,) = _sources([passage("a", score=None, similarity=0.4)])
    assert source["distances"] == [0.4]
