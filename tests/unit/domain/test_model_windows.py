import pytest

from cragside.domain.token_counts import ModelWindows, spelt_alike, stated_window, use_window


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("qwen", "qwen:latest"), ("Qwen:7B", "qwen:7b"), ("library/qwen", "qwen:latest"),
        ("registry.ollama.ai/library/qwen:7b", "qwen:7b"), ("https://registry.ollama.ai/ann/qwen:7b", "ann/qwen:7b"),
        ("hf.co/Ann/Qwen", "hf.co/ann/qwen:latest"), ("localhost:5000/ann/qwen", "localhost:5000/ann/qwen:latest"),
        ("mylibrary/qwen", "mylibrary/qwen:latest"), ("", ":latest"),
    ],
)  # fmt: skip
def test_all_spellings_of_a_name_are_one(spelling, name):
    assert spelt_alike(spelling) == name
    assert spelt_alike(name) == name


def test_a_kept_window_grows_and_is_forgotten():
    windows = ModelWindows()
    assert not windows
    windows.keep("judge", 8192)
    windows.keep("library/Judge:latest", 4096)
    assert (bool(windows), windows.kept("judge"), windows.kept("other")) == (True, 8192, None)
    windows.forget("JUDGE")
    assert windows.kept("judge") is None


def test_windows_are_kept_for_so_many_models():
    windows = ModelWindows()
    for number in range(200):
        windows.keep(f"model-{number}", 4096)
    assert sum(windows.kept(f"model-{number}") is not None for number in range(200)) == 64
    assert windows.kept("model-199") == 4096


def test_a_window_is_brought_for_one_model_and_one_request():
    with use_window("judge", 8192):
        assert (stated_window("library/judge"), stated_window("other")) == (8192, None)
    assert stated_window("judge") is None
