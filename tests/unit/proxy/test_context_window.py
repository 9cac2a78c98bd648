import pytest
from hypothesis import given
from hypothesis import strategies as st

from cragside.entrypoints.proxy.enrichment import ContextWindow, tokens_of, window_of


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("options", "limit", "reported", "current", "largest"),
    [
        (None, 32_768, 4096, 4096, 32_768),
        ({}, 32_768, 4096, 4096, 32_768),
        ({}, 2048, 4096, 2048, 2048),
        ({}, None, 4096, 4096, 4096),
        ({}, 131_072, 32_768, 32_768, 131_072),
        ({"num_ctx": 2048}, 32_768, 4096, 2048, 2048),
        ({"num_ctx": 65_536}, 32_768, 4096, 32_768, 32_768),
        ({"num_ctx": 2048}, None, None, 2048, 2048),
        ({"num_ctx": 8192.0}, 32_768, 4096, 8192, 8192),
        ({"num_ctx": 0}, 32_768, 4096, 4096, 4096),
        ({"num_ctx": "big"}, 32_768, 4096, 4096, 4096),
        ({"num_ctx": True}, 32_768, 4096, 4096, 4096),
        ("wrong", 32_768, 4096, 4096, 4096),
    ],
)
def test_the_window_is_the_one_that_ollama_reads_or_can_be_set_to(options, limit, reported, current, largest):
    window = window_of({"options": options}, limit=limit, reported=reported, adjustable=True)
    assert (window.current, window.largest) == (current, largest)


def test_an_api_without_num_ctx_keeps_the_hosts_default():
    window = window_of({"options": {"num_ctx": 9999}}, limit=32_768, reported=4096, adjustable=False)
    assert (window.current, window.largest) == (4096, 4096)


def test_the_window_is_unknown_without_information():
    assert window_of({}, limit=None, reported=None, adjustable=True) is None


@pytest.mark.parametrize(
    ("request_", "largest", "reserve"),
    [
        ({}, 32_768, 1024),
        ({}, 2048, 512),
        ({"options": {"num_predict": 200}}, 32_768, 200),
        ({"options": {"num_predict": 100_000}}, 32_768, 16_384),
        ({"options": {"num_predict": -1}}, 32_768, 1024),
        ({"max_tokens": 300}, 32_768, 300),
        ({"max_completion_tokens": 400, "max_tokens": 300}, 32_768, 400),
    ],
)
def test_room_is_kept_for_the_answer(request_, largest, reserve):
    assert window_of(request_, limit=largest, reported=2048, adjustable=True).reserve == reserve


@pytest.mark.parametrize(
    ("window", "request_tokens", "evidence"),
    [
        (ContextWindow(4096, 32_768, 1024), 100, 3000),
        (ContextWindow(4096, 4096, 1024), 800, 1514),
        (ContextWindow(2048, 2048, 512), 1536, 0),
        (ContextWindow(2048, 2048, 512), 9999, 0),
    ],
)
def test_evidence_gets_the_tokens_that_request_and_answer_leave(window, request_tokens, evidence):
    assert window.evidence_tokens(3000, request_tokens) == evidence


@pytest.mark.parametrize(
    ("window", "tokens", "num_ctx"),
    [
        (ContextWindow(4096, 32_768, 1024), 3072, 4096),
        (ContextWindow(4096, 32_768, 1024), 3073, 8192),
        (ContextWindow(2048, 32_768, 1024), 1025, 4096),
        (ContextWindow(4096, 32_768, 1024), 7168, 8192),
        (ContextWindow(4096, 32_768, 1024), 7169, 12_288),
        (ContextWindow(10_000, 32_768, 1024), 9000, 12_288),
        (ContextWindow(32_768, 131_072, 1024), 6000, 32_768),
        (ContextWindow(4096, 6000, 1024), 4000, 6000),
        (ContextWindow(4096, 6000, 1024), 90_000, 6000),
        (ContextWindow(4096, 4096, 1024), 90_000, 4096),
        (ContextWindow(4096, 4096, 1024, adjustable=False), 90_000, None),
    ],
)
def test_num_ctx_grows_in_few_steps_and_never_shrinks(window, tokens, num_ctx):
    assert window.num_ctx_for(tokens) == num_ctx


@given(
    current=st.integers(256, 40_000),
    more=st.integers(0, 40_000),
    request_tokens=st.integers(0, 50_000),
    budget=st.integers(0, 50_000),
    predicted=st.one_of(st.none(), st.integers(-2, 10**6)),
)
def test_an_enriched_request_always_fits_unless_it_was_too_long_before(
    current, more, request_tokens, budget, predicted
):
    request = {"options": {"num_predict": predicted}}
    window = window_of(request, limit=current + more, reported=current, adjustable=True)
    evidence = window.evidence_tokens(budget, request_tokens)
    assert 0 <= evidence <= budget
    enriched = request_tokens + int(evidence * 1.5)
    read = window.num_ctx_for(enriched)
    assert window.current <= read <= window.largest
    if evidence:
        assert enriched + window.reserve <= read


def test_every_part_of_the_prompt_is_counted():
    assert tokens_of({"prompt": "a b", "system": "c", "suffix": "d", "context": [1, 2, 3]}, words) == 7
    assert tokens_of({"prompt": "a", "images": ["x" * 9999]}, words) == 1 + 1024
    assert tokens_of({"tools": [{"name": "f"}]}, words) == 2
    message = {
        "role": "user",
        "content": [{"type": "text", "text": "a b"}, {"type": "image_url", "image_url": {"url": "x" * 9999}}, "c"],
        "thinking": "d e",
        "tool_calls": [{"f": 1}],
    }
    assert tokens_of({"messages": [message]}, words) == 8 + 2 + 1024 + 1 + 2 + 2


@given(
    st.dictionaries(
        st.sampled_from(["prompt", "system", "messages", "tools", "images", "context", "options", "max_tokens"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["content", "text", "num_ctx"]), inner)
            ),
            max_leaves=8,
        ),
    )
)
def test_no_request_is_too_odd_to_be_counted(request_):
    assert tokens_of(request_, words) >= 0
    window_of(request_, limit=8192, reported=4096, adjustable=True)
