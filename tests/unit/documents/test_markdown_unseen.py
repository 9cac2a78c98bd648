"""Comments, hidden elements and links that run scripts, in Markdown and on Obsidian's cards."""

import json

import pytest

from cragside.adapters.documents.reading import FileOrigin
from cragside.adapters.documents.structured import canvas_export
from cragside.adapters.documents.texts import read_markdown


def note(text):
    return read_markdown(text.encode(), FileOrigin("a.md", "md")).text


def card(text):
    value = {"nodes": [{"id": "a", "type": "text", "text": text, "x": 0, "y": 0}], "edges": []}
    return canvas_export(json.loads(json.dumps(value))).text.strip()


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize("read", [note, card])
@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- secret -->",
        "<!-- one\n\nsecret\n-->",
        "%%secret%%",
        "%%\nsecret\n%%",
        "<span hidden>secret</span>",
        '<span style="display:none">se<span>cr</span>et secret</span>',
        "<div style='font-size: 0'>\n\nsecret\n\n</div>",
        '<SPAN class="a" STYLE="color:#fff">secret</SPAN>',
        "<div inert>secret</div>",
        "<div popover=auto>secret</div>",
        "<script>secret</script>",
        "<template>secret</template>",
    ],
)
def test_what_nobody_sees_is_left_out(read, hidden):
    assert read(f"Before {hidden} after.") == "Before  after."


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize("read", [note, card])
def test_a_link_that_runs_a_script_is_its_text(read):
    link = (
        "See [the plan](javascript:alert('x(1)')) and ![it](data:image/png;base64,AAAA) or [home](https://a.example)."
    )
    assert read(link) == "See the plan and it or [home](https://a.example)."


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize("read", [note, card])
@pytest.mark.parametrize(
    "hidden",
    [
        "<span hidden>secret</span>",
        "<span hidden>se<b hidden>cr</b>et</span>",
        "<!-- secret -->",
        "<!-- [secret](b ] -->",
        "<!--\n\nsecret\n\n-->",
        "%%secret%%",
        "%% [secret %%",
    ],
)
def test_what_nobody_sees_in_a_link_that_runs_a_script_is_left_out(read, hidden):
    assert read(f"See [the {hidden}list](javascript:open()) here.") == "See the list here."
    assert read(f"See [the list]({hidden}javascript:open(1)) here.") == "See the list here."


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize("read", [note, card])
@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("[![the plan](data:x)](javascript:open())", "the plan"),
        ("[![](data:secret)the plan](javascript:open())", "the plan"),
        (
            "[the plan [1] and [home](https://a.example)](javascript:open())",
            "the plan [1] and [home](https://a.example)",
        ),
        ("[the\nplan](javascript:open())", "the\nplan"),
        (f"[{'plan ' * 200}](vbscript:open())", "plan " * 200),
        (f"![the plan](data:image/png;base64,{'A' * 150_000})", "the plan"),
        ("[a](javascript:b( [the plan](javascript:open())", "[a](javascript:b( the plan"),
        ("[the `[` plan](javascript:open())", "the `[` plan"),
        ("[the plan \\[1](javascript:open())", "the plan \\[1"),
        ("a ]] b [the plan](javascript:open())", "a ]] b the plan"),
    ],
)
def test_any_link_that_runs_a_script_is_its_text(read, link, shown):
    assert read(f"See {link} here.") == f"See {shown} here."


@pytest.mark.parametrize("read", [note, card])
@pytest.mark.parametrize(
    "text",
    [
        "Write `<!-- secret -->` and `<span hidden>` here, `</span>` there.",
        "```\n<!-- secret -->\n%%secret%%\n```",
        "A <!-- without an end, a <span hidden> too.",
        "An [opened bracket\n\nis none of](javascript:another paragraph).",
        "Sold at 5%% and 7%%, <b>bold</b>, a < b > c.",
        '<span aria-hidden="true">seen</span> <span style="color: red">red</span>',
    ],
)
def test_code_and_what_readers_see_stays(read, text):
    assert read(text) == text


@pytest.mark.attack("hidden text")
def test_a_card_with_an_address_that_runs_a_script_is_left_out():
    nodes = [
        {"id": "a", "type": "link", "url": "javascript:secret()"},
        {"id": "b", "type": "link", "url": "https://a.example"},
    ]
    assert canvas_export({"nodes": nodes}).text.strip() == "https://a.example"


@pytest.mark.attack("hostile files")
@pytest.mark.parametrize(
    "mark", ["<!--", "<span hidden>", "<b>", "[a](javascript:", "](data:", "(", "<a hidden ", "[", "</span>"]
)
def test_many_beginnings_without_an_end_take_no_time_to_speak_of(mark):
    assert note(mark * 20_000).count(mark.strip()[:3]) > 0
