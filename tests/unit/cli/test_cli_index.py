"""`cragside index` on repositories that git made."""

import os
import shutil
import subprocess

import httpx
import pytest
from cli_services import RealCommands, printed, refused

IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@a.example",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@a.example",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, env=os.environ | IDENTITY)


def commit(folder):
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--message", "Work")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A repository, to be copied."""
    folder = tmp_path_factory.mktemp("made") / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "node_modules").mkdir()
    (folder / "README.md").write_text("# Lamp\n\nIt lights the lighthouse.\n")
    (folder / "src" / "lamp.py").write_text('"""The lamp."""\n\n\ndef light() -> None:\n    """Light the lamp."""\n')
    (folder / "src" / "logo.png").write_bytes(b"\x89PNG\x00")
    (folder / "node_modules" / "x.js").write_text("var other = 1;\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder)
    return folder


@pytest.fixture
def project(made, tmp_path):
    return shutil.copytree(made, tmp_path / "project")


def names(real, *options):
    return {document["name"] for document in real.json("documents", *options)["documents"]}


def test_a_repository_is_indexed_with_filterable_metadata(real, project):
    said = printed(real("index", "--repo", str(project), "--repoId", "lamp"))
    assert "indexed   lamp#README.md" in said
    assert "skipped   src/logo.png" in said
    assert "2 indexed, 1 skipped." in said
    assert said.endswith("\nDone. repoId=lamp\n")
    assert names(real) == {"lamp#README.md", "lamp#src/lamp.py"}
    (found,) = real.json("query", "light the lamp", "--repoId", "lamp", "--lang", "py")["results"]
    payload = found["payload"]
    assert (payload["repoId"], payload["path"], payload["lang"]) == ("lamp", "src/lamp.py", "py")
    assert payload["repoUrl"] == project.as_posix()
    assert real.json("query", "lamp", "--pathPrefix", "src/")["results"][0]["source"] == "lamp#src/lamp.py"


@pytest.fixture(scope="module")
def code(made, tmp_path_factory):
    """A store with files of several languages, which no test changes."""
    folder = shutil.copytree(made, tmp_path_factory.mktemp("code") / "project")
    (folder / "src" / "lamp.pyi").write_text("def light() -> None: ...\n")
    (folder / "src" / "lamp.h").write_text("void light(void);\n")
    commit(folder)
    real = RealCommands(folder.with_name("home"))
    real("index", "--repo", str(folder), "--no-enrich")
    return real


@pytest.mark.parametrize(
    ("language", "paths"),
    [
        ("python", {"src/lamp.py", "src/lamp.pyi"}),
        ("Python", {"src/lamp.py", "src/lamp.pyi"}),
        ("py", {"src/lamp.py", "src/lamp.pyi"}),
        (".md", {"README.md"}),
        ("c", {"src/lamp.h"}),
        ("javascript", set()),
    ],
)
def test_code_is_found_by_its_language_and_by_its_ending(code, language, paths):
    found = code.json("query", "light the lamp", "--lang", language)["results"]
    assert {passage["payload"]["path"] for passage in found} == paths


def test_without_an_id_it_is_filed_under_its_path(real, project):
    told = real.json("index", "--repo", str(project))
    assert (told["repoId"], told["counts"], told["gone"]) == (project.as_posix(), {"indexed": 2, "skipped": 1}, [])


def test_removed_files_are_listed_and_pruned_on_request(real, project):
    index = ("index", "--repo", str(project), "--repo-id", "lamp")
    assert real(*index).exit_code == 0
    (project / "README.md").unlink()
    (project / "src" / "lamp.py").write_text('"""Another lamp."""\n')
    commit(project)
    listed = real(*index)
    assert "1 updated" in listed.stdout
    assert "No longer in the repository, but still known" in listed.stderr
    assert "lamp#README.md" in listed.stderr
    assert names(real) == {"lamp#README.md", "lamp#src/lamp.py"}
    assert "removed   lamp#README.md" in printed(real(*index, "--prune"))
    assert names(real) == {"lamp#src/lamp.py"}


def test_excluded_files_are_not_treated_as_removed(real, project):
    index = ("index", "--repo", str(project), "--repo-id", "lamp", "--prune")
    assert real(*index).exit_code == 0
    assert real.json(*index, "--include", "*.md")["gone"] == []
    assert real.json(*index, "--exclude", "*.py")["gone"] == []
    assert len(names(real)) == 2


def test_limits_on_number_and_size_are_kept(real, project):
    told = real.json("index", "--repo", str(project), "--maxFiles", "1", "--no-enrich")
    assert told["counts"]["indexed"] == 1
    told = real.json("index", "--repo", str(project), "--repoId", "small", "--maxBytes", "40", "-w", "small")
    assert [each["name"] for each in told["documents"] if each["status"] == "indexed"] == ["small#README.md"]
    assert "bytes, the limit is 40" in str(told["documents"])


def test_an_explicit_document_type_overrides_detection(real, project):
    assert real("index", "--repo", str(project), "--doc-type", "article", "--no-enrich").exit_code == 0
    assert {each["doc_type"] for each in real.json("documents")["documents"]} == {"article"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--repo", "/nowhere/at/all"), "is not a git repository"),
        (("--repo", "ext::sh -c id"), "Give a repository as"),
        (("--repo", "https://127.0.0.1/x.git"), "The repository is not cloned"),
        (("--repo", ".", "--doc-type", "novel"), "--doc-type is one of"),
        (("--repo", ".", "--branch", "--upload-pack=id"), "is not the name of a branch or tag"),
        ((), "Missing option '--repo'"),
    ],
)
def test_a_failed_clone_is_bad_input_and_makes_no_store(real, arguments, said):
    assert said in refused(real("index", *arguments))
    assert not (real.home / "default").exists()


def test_a_kept_clone_is_in_the_requested_folder(real, project, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = real("index", "--repo", str(project), "--keep", "--no-enrich")
    place = result.stderr.partition("The clone stays: ")[2].strip()
    assert place.startswith(str(tmp_path))
    assert os.path.isdir(place)
    assert result.stderr.count("\n") == 1


def test_a_service_gets_the_files_with_their_metadata(real, served, project):
    service = ("--api", served.address, "--token", "secret", "--workspace", "w")
    index = ("index", "--repo", str(project), "--repoId", "lamp", "--doc-type", "article", "--prune", *service)
    assert real.json(*index)["counts"] == {"indexed": 2, "skipped": 1}
    listed = real.json("documents", *service)["documents"]
    assert {(each["name"], each["doc_type"], each["metadata"]["lang"]) for each in listed} == {
        ("lamp#README.md", "article", "md"),
        ("lamp#src/lamp.py", "article", "py"),
    }
    (project / "README.md").unlink()
    commit(project)
    assert real.json(*index)["counts"] == {"unchanged": 1, "removed": 1, "skipped": 1}
    assert not real.home.exists()


def test_the_service_refuses_an_unknown_type_too(served):
    answer = httpx.post(
        f"{served.address}/v1/documents",
        headers={"X-API-Key": "secret"},
        data={"doc_type": "novel"},
        files={"files": ("a.md", b"Some text.")},
    )
    assert answer.status_code == 400
    assert "doc_type is one of code" in answer.json()["error"]["message"]
