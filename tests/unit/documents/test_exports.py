"""Reads what programs export as JSON as people read it."""

import json

import pytest

from cragside.adapters.documents import structured, texts
from cragside.adapters.documents.reading import FileOrigin


def read(value, name="export.json"):
    return structured.read(json.dumps(value).encode(), FileOrigin(name, name.rpartition(".")[2]))


def said(role, text, **more):
    return {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}, **more}


CHATGPT = {
    "title": "Goat cheese",
    "create_time": 1741100000.1,
    "current_node": "d",
    "mapping": {
        "r": {"message": None, "parent": None},
        "s": {"message": said("system", "secret instruction"), "parent": "r"},
        "a": {"message": said("user", "How long does it ripen?"), "parent": "s"},
        "c": {"message": said("assistant", "An answer that was replaced."), "parent": "a"},
        "d": {"message": said("assistant", "Five weeks.", status="finished_successfully"), "parent": "a"},
    },
}


def test_conversations_of_chatgpt_are_sections_with_who_said_what():
    reading = read([CHATGPT, {**CHATGPT, "title": "Again", "current_node": "a"}])
    assert reading.text == (
        "Goat cheese – 2025-03-04\n\nuser: How long does it ripen?\n\nassistant: Five weeks.\n\n"
        "Again – 2025-03-04\n\nuser: How long does it ripen?\n\n"
    )
    assert [(mark.section, mark.apart) for mark in reading.marks] == [("Goat cheese", True), ("Again", True)]


MESSAGES = [{"role": "user", "content": "How far apart?"}, {"role": "assistant", "content": "92 cm."}]


@pytest.mark.parametrize(
    "conversation",
    [
        {"title": "Rack", "chat": {"messages": MESSAGES}},
        {
            "title": "Rack",
            "chat": {
                "history": {
                    "currentId": "2",
                    "messages": {"1": {**MESSAGES[0], "parentId": None}, "2": {**MESSAGES[1], "parentId": "1"}},
                }
            },
        },
        {
            "name": "Rack",
            "chat_messages": [
                {"sender": "user", "text": "How far apart?"},
                {
                    "sender": "assistant",
                    "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "92 cm."}],
                },
            ],
        },
        {"title": "Rack", "messages": MESSAGES},
    ],
    ids=["open-webui", "open-webui-history", "claude", "messages"],
)
def test_conversations_of_other_programs_read_the_same(conversation):
    for value in (conversation, [conversation]):
        assert read(value).text == "Rack\n\nuser: How far apart?\n\nassistant: 92 cm.\n\n"
    assert read(conversation).title == "Rack"


THOUGHTS = {
    "details": '<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n> hm\n</details>\n',
    "details in another order": '<details id="a" done="true" type="reasoning">\n> hm </details> hm\n</details>\n',
    "think": "<think>\nhm\n</think>\n\n",
    "thinking": "<thinking>hm</thinking>",
}


@pytest.mark.parametrize("thoughts", THOUGHTS.values(), ids=THOUGHTS)
def test_what_a_model_thought_is_left_out(thoughts):
    answer = {**MESSAGES[1], "content": f"{thoughts}92 cm.", "parentId": "1"}
    history = {"currentId": "2", "messages": {"1": MESSAGES[0], "2": answer}}
    for chat in ({"messages": [MESSAGES[0], answer]}, {"history": history}):
        assert read({"title": "Rack", "chat": chat}).text == "Rack\n\nuser: How far apart?\n\nassistant: 92 cm.\n\n"


@pytest.mark.parametrize("thoughts", THOUGHTS.values(), ids=THOUGHTS)
def test_what_a_model_thought_is_left_out_of_an_export_as_text(thoughts):
    def written(thoughts):
        turn = f"### USER\n<think> is a tag?\n\n### ASSISTANT\n{thoughts}92 cm.\n\n"
        return turn * 2

    assert texts.read(written(thoughts).encode(), FileOrigin("chat.txt", "txt")).text == written("")


def test_a_text_that_is_no_export_keeps_what_looks_like_thoughts():
    text = "Notes\n### ASSISTANT\n<think>hm</think>92 cm.\n"
    assert texts.read(text.encode(), FileOrigin("chat.txt", "txt")).text == text


def test_an_answer_of_thoughts_alone_is_left_out_and_what_a_user_writes_stays():
    asked = {"role": "user", "content": "<think>is a tag of whom?"}
    text = read({"messages": [asked, {"role": "assistant", "content": "<think>hm"}]}).text
    assert text == "Conversation\n\nuser: <think>is a tag of whom?\n\n"


def test_conversations_in_lines_read_the_same():
    lines = "\n".join(json.dumps({"title": f"T{n}", "messages": MESSAGES}) for n in range(2))
    reading = structured.read(lines.encode(), FileOrigin("a.jsonl", "jsonl"))
    assert [mark.section for mark in reading.marks] == ["T0", "T1"]


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [{"level": 3, "text": "full"}]},
        {"messages": []},
        {"nodes": [1]},
        {"values": [1], "mapping": 3},
        [[]],
    ],
)
def test_other_data_stays_as_it_is(value):
    assert json.loads(read(value).text) == value


@pytest.mark.parametrize("name", ["doors.json", "doors.jsonl"])
def test_a_key_that_comes_twice_keeps_all_of_its_values(name):
    content = b'{"door": "left", "n": 1.50, "door": "right", "in": [{"a": 1, "a": {"b": 2, "b": 3}, "a": 1}]}'
    text = structured.read(content, FileOrigin(name, name.rpartition(".")[2])).text
    assert "".join(text.split()) == "".join(content.decode().split())
    assert text.count("\n") > 10, "indented"


def test_an_export_with_a_key_that_comes_twice_loses_nothing():
    content = b'{"title": "A", "title": "B", "messages": [{"role": "user", "content": "x", "content": "y"}]}'
    for each in (content, content + b"\n" + content):
        text = structured.read(each, FileOrigin("a.json", "json")).text
        assert all(f'"{value}"' in text for value in "ABxy")


def test_a_thread_that_goes_round_ends():
    round_ = {"mapping": {"a": {"message": said("user", "Hm"), "parent": "a"}}, "current_node": "a"}
    assert read(round_).text == "Conversation\n\nuser: Hm\n\n"


DOCUMENT = {
    "id": "1",
    "title": "ferry.txt",
    "docAuthor": "Ines",
    "description": "No description found.",
    "docSource": "a text file uploaded by the user.",
    "chunkSource": "localfile:///ferry.txt",
    "published": "2025-03-04",
    "wordCount": 5,
    "pageContent": "The ferry leaves at 8:40.\n",
    "token_count_estimate": 9,
}


def test_a_document_of_anythingllm_is_its_text_with_its_title():
    reading = read(DOCUMENT)
    assert (reading.text.strip(), reading.title) == ("The ferry leaves at 8:40.", "ferry.txt")
    assert reading.properties == {"author": "Ines", "published": "2025-03-04", "source": "localfile:///ferry.txt"}


def test_several_documents_are_sections():
    reading = read([DOCUMENT, {"page_content": "Fares.", "metadata": {"source": "fares.md"}}])
    assert reading.text == "The ferry leaves at 8:40.\n\nFares.\n\n"
    assert [mark.section for mark in reading.marks] == ["ferry.txt", "fares.md"]


def test_a_vector_cache_of_anythingllm_is_its_texts_without_vectors():
    text = "<document_metadata>\nsourceDocument: ferry.txt\n</document_metadata>\n\nThe ferry leaves at 8:40."
    reading = read([[{"vectorDbId": "x", "values": [0.1, 0.2], "metadata": {"title": "ferry.txt", "text": text}}]])
    assert (reading.text, reading.title) == ("The ferry leaves at 8:40.\n\n", "ferry.txt")


def test_a_canvas_is_its_cards_from_top_to_bottom():
    reading = read(
        {
            "nodes": [
                {"id": "2", "type": "file", "file": "Roof.md", "x": 0, "y": 50},
                {"id": "1", "type": "text", "text": "Scaffold hire: Brodie, see [[Chimney|the sweep]]", "x": 0, "y": 0},
                {"id": "3", "type": "link", "url": "https://a.example/", "x": 9, "y": 50},
                {"id": "4", "type": "group", "label": "Autumn", "x": 0, "y": -9},
            ],
            "edges": [{"fromNode": "1", "toNode": "2", "label": "before"}],
        },
        "Plan.canvas",
    )
    cards = ["Autumn", "Scaffold hire: Brodie, see the sweep", "Roof.md", "https://a.example/"]
    assert reading.text == "\n\n".join(cards) + "\n\nScaffold hire: Brodie, see the sweep → Roof.md: before\n"
    assert reading.properties == {"links": ["Chimney", "Roof.md"]}


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"messages": 1, "n": NUMBER}'),
        ("a.json", '[{"type": "message", "ts": "NUMBER", "text": "seen", "n": -NUMBER}]'),
        ("a.json", '{"title": "NUMBER", "create_time": NUMBER, "messages": [{"role": "user", "content": "seen"}]}'),
        ("a.jsonl", '{"values": 1}\n{"n": NUMBER}'),
        ("a.canvas", '{"nodes": [{"type": "text", "text": "NUMBER", "x": NUMBER, "y": -NUMBER}]}'),
    ],
)
def test_data_with_a_number_of_any_length_is_read(digits, name, content):
    number = "7" * digits
    reading = structured.read(content.replace("NUMBER", number).encode(), FileOrigin(name, name.rpartition(".")[2]))
    assert number in reading.text or "seen" in reading.text


def test_of_a_card_with_two_texts_the_one_that_is_shown_is_read():
    content = b'{"nodes": [{"type": "text", "text": "nobody sees this", "x": 0, "text": "The ferry leaves at 9."}]}'
    assert structured.read(content, FileOrigin("a.canvas", "canvas")).text == "The ferry leaves at 9.\n\n"
