import pytest

from cragside.adapters import searxng as results
from cragside.adapters.searxng import cleaned, failed_engines

PAGE = {"title": "Tower", "url": "https://tower.example/", "content": "By Eiffel."}


def of(*results, **rest):
    return cleaned({"results": list(results), **rest}, 10)


def test_a_result_is_its_title_address_and_text():
    assert of({**PAGE, "engine": "x", "score": 1.0, "positions": [1]}) == [PAGE]


def test_markup_and_entities_are_taken_out_of_the_text():
    dirty = {**PAGE, "content": "By <b>Eiffel</b> &amp; Co.<script>alert(1)</script>\n\n <!-- x -->a&nbsp;&lt;3"}
    assert of(dirty)[0]["content"] == "By Eiffel & Co. a <3"


def test_markup_that_is_never_closed_reaches_to_the_end():
    assert of({**PAGE, "content": "seen <!-- not seen"})[0]["content"] == "seen"
    assert of({**PAGE, "content": "seen <!-- not --> again <style> not"})[0]["content"] == "seen again"


def test_an_entity_of_thousands_of_digits_is_no_character():
    assert of({**PAGE, "content": f"a &#{'9' * 5000}; b &#65;"})[0]["content"] == "a \ufffd b A"


def test_only_the_requested_number_of_results_is_read(monkeypatch):
    read = []
    monkeypatch.setattr(results, "_plain", lambda text, limit: read.append(text) or text)
    cleaned({"results": [{**PAGE, "url": f"https://a.example/{n}"} for n in range(30)]}, 4)
    assert len(read) == 8, "a title and a text for each"


def test_ordinary_angle_brackets_stay():
    assert of({**PAGE, "content": "1 < 2 and 3 > 2"})[0]["content"] == "1 < 2 and 3 > 2"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "ftp://a/b",
        "file:///etc/passwd",
        "//a/b",
        "",
        None,
        7,
        "http://",
        "https://a b/",
        "http://[x",
    ],
)
def test_results_without_a_web_address_are_dropped(url):
    assert of({**PAGE, "url": url}, {"title": "no address", "content": "x"}) == []


def test_a_page_is_returned_once():
    twice = [PAGE, {**PAGE, "url": "http://TOWER.example"}, {**PAGE, "url": "https://tower.example/#top"}]
    assert of(*twice) == [PAGE]
    assert len(of(PAGE, {**PAGE, "url": "https://tower.example/?page=2"})) == 2


def test_a_result_without_a_snippet_has_its_title_as_text():
    assert of({"title": "Tower", "url": PAGE["url"]}) == [{**PAGE, "content": "Tower"}]


def test_a_result_without_a_title_is_called_after_its_host():
    assert of({"url": PAGE["url"], "content": "By Eiffel."}) == [{**PAGE, "title": "tower.example"}]


def test_a_result_without_any_text_is_dropped():
    assert of({"url": PAGE["url"], "title": " ", "content": None}) == []


@pytest.mark.parametrize("broken", [None, "text", 3, [], [["x"]], {"a": 1}])
def test_fields_of_the_wrong_shape_are_passed_over(broken):
    assert cleaned({"results": broken, "answers": broken, "infoboxes": broken}, 10) == []
    assert of(PAGE, answers=broken, infoboxes=broken) == [PAGE]


def test_answers_count_when_they_name_a_page_and_never_break_as_strings():
    answer = {"answer": "It was Eiffel.", "url": "https://answers.example/1"}
    found = of(PAGE, answers=["42", answer, {"answer": "no page"}])
    assert found[0] == {"title": "answers.example", "url": answer["url"], "content": "It was Eiffel."}
    assert found[1:] == [PAGE]


def test_an_infobox_is_a_result_with_its_first_link():
    box = {"infobox": "Eiffel Tower", "content": "A tower.", "urls": [{"title": "W", "url": "https://w.example/E"}]}
    assert of(infoboxes=[box]) == [{"title": "Eiffel Tower", "url": "https://w.example/E", "content": "A tower."}]


def test_results_are_limited_in_number_and_length():
    many = [{**PAGE, "url": f"https://a.example/{n}", "content": "x" * 100_000} for n in range(30)]
    found = cleaned({"results": many}, 4)
    assert len(found) == 4
    assert max(len(result["content"]) for result in found) == 8000


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([["bing", "timeout"]], ["bing (timeout)"]),
        ([["bing", "timeout", True]], ["bing (timeout)"]),
        ([["bing"]], ["bing"]),
        (["bing"], ["bing"]),
        ([{"engine": "bing"}], ["bing"]),
        ([[], None, 3], []),
        (None, []),
    ],
)
def test_failed_engines_are_listed_whatever_their_form(entries, said):
    assert failed_engines({"unresponsive_engines": entries}) == said


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@a.example/x?q=1#f", "https://a.example/x?q=1#f"),
        ("http://bank.example@evil.example/", "http://evil.example/"),
        ("http://a@b@c.example:8080/@me", "http://c.example:8080/@me"),
        ("https://a.example/@me", "https://a.example/@me"),
    ],
)
def test_user_names_and_passwords_in_addresses_are_taken_out(url, shown):
    assert of({**PAGE, "url": url})[0]["url"] == shown


def test_an_address_of_only_a_user_name_is_invalid():
    assert of({**PAGE, "url": "https://user@/x"}) == []
