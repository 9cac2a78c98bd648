import pytest

from cragside.domain.names import distinct_labels, names_below


@pytest.mark.parametrize(
    ("sources", "labels"),
    [
        (["/home/ann/w1/todo.md"], ["todo.md"]),
        (["/home/ann/w1/todo.md", "/home/ann/w2/todo.md"], ["w1/todo.md", "w2/todo.md"]),
        (["/a/w/todo.md", "/b/w/todo.md", "/b/v/todo.md"], ["a/w/todo.md", "b/w/todo.md", "v/todo.md"]),
        (["/w/todo.md", "/a/w/todo.md"], ["/w/todo.md", "a/w/todo.md"]),
        (["/todo.md", "/todo/todo.md"], ["/todo.md", "todo/todo.md"]),
        (["todo.md", "/w/todo.md"], ["todo.md", "w/todo.md"]),
        (["w/todo.md", "/w/todo.md"], ["w/todo.md", "/w/todo.md"]),
        (["crm-42", "https://a.example/todo.md"], ["todo.md (crm-42)", "a.example/todo.md"]),
        (["/w1/xtodo.md", "/w2/todo.md"], ["todo.md (/w1/xtodo.md)", "w2/todo.md"]),
    ],
)
def test_namesakes_are_labelled_by_their_nearest_folders(sources, labels):
    assert distinct_labels("todo.md", sources, taken=lambda names: []) == dict(zip(sources, labels, strict=True))


def test_labels_do_not_depend_on_documents_with_other_names():
    labels = distinct_labels(
        "todo.md", ["/a/w1/todo.md", "/b/w2/todo.md"], taken=lambda names: {"w1/todo.md"} & set(names)
    )
    assert labels == {"/a/w1/todo.md": "a/w1/todo.md", "/b/w2/todo.md": "w2/todo.md"}


def test_a_name_may_have_folders_itself():
    sources = ["/a/notes/w/todo.md", "/b/notes/w/todo.md"]
    labels = distinct_labels("w/todo.md", sources, taken=lambda names: [])
    assert list(labels.values()) == ["a/notes/w/todo.md", "b/notes/w/todo.md"]


def test_thousands_of_namesakes_are_labelled_in_one_pass_per_folder():
    asked = []
    sources = [f"/home/ann/p{number}/src/README.md" for number in range(5000)]
    labels = distinct_labels("README.md", sources, taken=lambda names: asked.append(len(names)) or [])
    assert labels[sources[7]] == "p7/src/README.md"
    assert asked == [0, 5000]


def test_the_names_of_a_file_begin_at_each_of_its_folders():
    assert names_below("/a/b/c.md") == ["c.md", "b/c.md", "a/b/c.md"]
    assert names_below("c.md") == ["c.md"]
