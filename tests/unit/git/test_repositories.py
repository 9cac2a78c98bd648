"""Files of a repository that are indexed, and attacks of a hostile one."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from cragside.adapters import git as command
from cragside.adapters import git as module
from cragside.adapters.documents.folders import Refused
from cragside.adapters.git import RepositoryFile, cloned, files_of, paths_of
from cragside.domain.errors import ConfigurationError, ValidationError
from tests.unit.git.conftest import GitServer, Repository, drained, unfold


class NoNames:
    """A resolver with a script; the operating system could not find these names."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    async def addresses(self, name):
        self.asked.append(name)
        if name not in self.answers:
            raise OSError("no such name")
        return self.answers[name]

    async def close(self):
        pass


async def indexed(source, *, branch=None, **chosen):
    async with cloned(str(source), branch=branch) as checkout:
        found = [found async for found in files_of(checkout, **chosen)]
    assert not checkout.folder.exists()
    files = {file.path: file for file in found if isinstance(file, RepositoryFile)}
    return files, {one.name: one.reason for one in found if isinstance(one, Refused)}


async def test_files_have_content_and_metadata(repository):
    repository.write_all(
        {"README.md": "# Hello\n", "src/app.py": "print(1)\n", "src/ünï cödé.txt": "hi", "Makefile": "all:\n"}
    )
    commit = repository.git("rev-parse", "HEAD").decode().strip()
    async with cloned(str(repository.folder), repo_id="project") as checkout:
        assert checkout.commit == commit
        found = [found async for found in files_of(checkout)]
    assert [file.path for file in found] == ["Makefile", "README.md", "src/app.py", "src/ünï cödé.txt"]
    assert found[2] == RepositoryFile(
        "project#src/app.py",
        "src/app.py",
        b"print(1)\n",
        {
            "repoId": "project",
            "repoUrl": str(repository.folder),
            "path": "src/app.py",
            "lang": "py",
            "bytes": 9,
        },
    )
    assert [file.metadata["lang"] for file in found] == ["text", "md", "py", "text"]


async def test_a_folder_with_an_odd_name_can_be_cloned(tmp_path):
    odd = Repository(tmp_path / "a b#c?d%20é")
    odd.write_all({"a.md": "hello"})
    assert set((await indexed(odd.folder))[0]) == {"a.md"}


async def test_only_the_newest_commit_is_cloned(repository):
    for number in range(3):
        repository.write_all({"a.md": f"{number}"})
    async with cloned(str(repository.folder)) as checkout:
        assert (checkout.folder / "shallow").is_file()
        assert [file.content async for file in files_of(checkout)] == [b"2"]


async def test_a_branch_or_a_tag_can_be_named(repository):
    repository.write_all({"a.md": "main"})
    repository.git("checkout", "--quiet", "-b", "feature/x")
    repository.write_all({"a.md": "feature"})
    repository.git("tag", "v1")
    repository.git("checkout", "--quiet", "main")
    for branch, content in [(None, b"main"), ("feature/x", b"feature"), ("v1", b"feature")]:
        assert (await indexed(repository.folder, branch=branch))[0]["a.md"].content == content
    with pytest.raises(ValidationError, match="nowhere not found"):
        await indexed(repository.folder, branch="nowhere")


@pytest.mark.parametrize(
    "branch",
    ["--upload-pack=touch pwned", "-u", "--", "-", "", "a..b", "a b", "a:b", "a\x00b", "a\nb", "a*", "x" * 300],
)
async def test_a_branch_that_is_no_name_is_refused(repository, branch):
    repository.write_all({"a.md": "hello"})
    with pytest.raises(ValidationError, match="not the name of a branch or tag"):
        await indexed(repository.folder, branch=branch)


@pytest.mark.parametrize(
    "source",
    [
        "--upload-pack=touch pwned",
        "-oProxyCommand=touch pwned",
        "ext::sh -c 'touch pwned'",
        "fd::17",
        "transport::address",
        "file:///etc",
        "ssh://git@public.example/a",
        "ssh://-oProxyCommand=touch/a",
        "git@public.example:a/b.git",
        "-x@public.example:a",
        "public.example:a",
        "git://public.example/a",
        "ftp://public.example/a",
        "rsync://public.example/a",
        "a\x00b",
    ],
    ids=ascii,
)
async def test_other_ways_to_a_repository_are_refused(source):
    with pytest.raises(ValidationError, match="https:// URL or as the path"):
        await indexed(source)


@pytest.mark.parametrize(
    "source",
    [
        "https://127.0.0.1/a.git",
        "https://localhost/a.git",
        "https://169.254.169.254/a.git",
        "https://[::1]/a.git",
        "https://2130706433/a.git",
        "https://user:password@127.0.0.1/a.git",
        "https://a@b@127.0.0.1/a.git",
        "https://public.example\\@127.0.0.1/a.git",
        "https://inner.example/a.git",
        "https://mixed.example/a.git",
        "https://nowhere.example/a.git",
        "http://public.example/a.git",
        "https://public.example:22/a.git",
        "https://-oProxyCommand/a.git",
        "https://",
    ],
)
async def test_repositories_are_cloned_only_from_public_hosts(source, monkeypatch):
    async def no_clone(*_arguments):
        raise AssertionError("git was started")

    monkeypatch.setattr(module, "_clone", no_clone)
    answers = {"public.example": ["8.8.8.8"], "inner.example": ["10.0.0.1"], "mixed.example": ["8.8.8.8", "10.0.0.1"]}
    with pytest.raises(ValidationError, match=r"is not cloned|cannot be found|cloned over https") as failure:
        async with cloned(source, resolver=NoNames(**answers)):
            pass
    assert "password" not in failure.value.message


async def test_git_connects_to_the_address_that_was_checked(repository, server):
    repository.write_all({"a.md": "hello"})
    resolver = NoNames(**{"git.example": ["127.0.0.1"]})
    url = f"http://git.example:{server.port}/project/.git"
    async with cloned(url, allow=["127.0.0.1"], resolver=resolver) as checkout:
        assert checkout.url == checkout.repo_id == url
        assert [file.path async for file in files_of(checkout)] == ["a.md"]
    assert resolver.asked == ["git.example"]
    assert {head["host"] for _, head in server.requests} == {f"git.example:{server.port}"}


async def test_credentials_are_sent_only_to_the_server(repository, server):
    repository.write_all({"a.md": "hello"})
    url = f"http://me:s%40cret@git.example:{server.port}/project/.git?x=y"
    async with cloned(url, allow=["git.example"], resolver=NoNames(**{"git.example": ["127.0.0.1"]})) as checkout:
        files = [file async for file in files_of(checkout)]
        kept = b"".join(path.read_bytes() for path in checkout.folder.parent.rglob("*") if path.is_file())
    assert {head["authorization"] for _, head in server.requests} == {"Basic bWU6c0BjcmV0"}
    assert checkout.url == f"http://git.example:{server.port}/project/.git"
    assert "cret" not in repr(files) + repr(checkout)
    assert b"cret" not in kept
    assert b"bWU6c0BjcmV0" not in kept


async def test_redirects_are_not_followed(repository, server):
    victim = GitServer(repository.folder.parent)
    server.redirect = f"http://127.0.0.1:{victim.port}"
    try:
        with pytest.raises(ValidationError, match="git says"):
            async with cloned(f"http://127.0.0.1:{server.port}/project/.git", allow=["127.0.0.1"]):
                pass
        assert victim.requests == []
    finally:
        victim.stop()


async def test_proxies_and_settings_of_the_user_are_not_used(repository, server, monkeypatch, tmp_path):
    victim = GitServer(repository.folder.parent)
    (tmp_path / ".gitconfig").write_text(
        f'[url "http://127.0.0.1:{victim.port}/"]\n insteadOf = http://127.0.0.1:{server.port}/\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, f"http://127.0.0.1:{victim.port}")
    monkeypatch.setenv("GIT_SSH_COMMAND", "touch pwned")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:file")
    repository.write_all({"a.md": "hello"})
    try:
        async with cloned(f"http://127.0.0.1:{server.port}/project/.git", allow=["127.0.0.1"]) as checkout:
            assert [file.path async for file in files_of(checkout)] == ["a.md"]
        assert victim.requests == []
    finally:
        victim.stop()


async def test_links_are_not_followed(repository):
    (repository.folder / "passwd").symlink_to("/etc/passwd")
    (repository.folder / "outside").symlink_to("../..")
    (repository.folder / "inside.md").symlink_to("real.md")
    repository.write_all({"real.md": "hello"})
    files, passed_over = await indexed(repository.folder)
    assert set(files) == {"real.md"}
    assert passed_over == dict.fromkeys(["inside.md", "outside", "passwd"], "is a symbolic link")


async def test_submodules_are_not_fetched(repository, tmp_path):
    other = Repository(tmp_path / "other")
    other.write_all({"secret.md": "inner"})
    repository.git("submodule", "--quiet", "add", f"file://{other.folder}", "module")
    repository.write_all({"a.md": "hello"})
    files, passed_over = await indexed(repository.folder)
    assert set(files) == {"a.md"}
    assert passed_over["module"] == "is another repository (a submodule)"


async def test_neither_hooks_nor_filters_nor_settings_of_the_repository_run(repository, tmp_path):
    pwned = tmp_path / "pwned"
    repository.write_all({".gitattributes": "* filter=evil diff=evil merge=evil\n", "a.md": "hello"})
    for hook in (
        "post-checkout",
        "post-merge",
        "pre-receive",
        "post-upload-pack",
        "reference-transaction",
        "fsmonitor",
    ):
        path = repository.folder / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {pwned}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    for name in (
        "filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "core.fsmonitor",
        "core.sshCommand", "core.gitProxy", "core.pager", "core.editor", "core.askPass", "uploadpack.packObjectsHook",
        "core.alternateRefsCommand", "credential.helper", "gpg.program",
    ):  # fmt: skip
        repository.git("config", name, f"touch {pwned}; cat")
    files, _ = await indexed(repository.folder)
    assert files["a.md"].content == b"hello"
    assert not pwned.exists()


@pytest.mark.parametrize("name", [b"..", b".git", b"/etc", b"a\nb.md", b"\x1b[2J.md", b"\xff.md", b"a\xe2\x80\xaeb.md"])
async def test_forged_names_stay_names(repository, name):
    repository.write_all({"a.md": "hello"})
    blob = bytes.fromhex(repository.git("rev-parse", "HEAD:a.md").decode())
    repository.commit_tree(b"100644 %b\0%b" % (name, blob))
    files, passed_over = await indexed(repository.folder, exclude=["!.git/"])
    for path in files:
        assert path.isprintable()
        assert ".." not in path.split("/")
        assert not path.startswith("/")
    assert len(files) + len(passed_over) == 1


async def test_patterns_choose_files(repository):
    names = [
        "a.md",
        "docs/b.md",
        "docs/c.py",
        "src/d.py",
        "src/test/e.py",
        "vendor/f.py",
        "x/node_modules/g.js",
        "uv.lock",
    ]
    repository.write_all(dict.fromkeys(names, "hello"))
    for chosen, expected in [
        ({}, {"a.md", "docs/b.md", "docs/c.py", "src/d.py", "src/test/e.py"}),
        ({"include": ["*.py"]}, {"docs/c.py", "src/d.py", "src/test/e.py"}),
        ({"include": ["/src/", "*.md"], "exclude": ["test/"]}, {"a.md", "docs/b.md", "src/d.py"}),
        ({"exclude": ["*", "!/a.md"]}, {"a.md"}),
        ({"exclude": ["!vendor/"], "include": ["*.py"]}, {"docs/c.py", "src/d.py", "src/test/e.py", "vendor/f.py"}),
    ]:
        assert set((await indexed(repository.folder, **chosen))[0]) == expected


async def test_binary_files_are_skipped_with_a_reason(repository):
    repository.write_all(
        {
            "binary.md": b"a\x00b",
            "empty.md": b"",
            "large.md": b"x" * 1001,
            "largest.md": b"x" * 1000,
            "lfs.md": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
            "page.pdf": b"%PDF-1.7\x00",
        }
    )
    files, passed_over = await indexed(repository.folder, max_bytes=1000)
    assert set(files) == {"largest.md", "page.pdf"}
    assert passed_over == {
        "binary.md": "holds binary data",
        "empty.md": "is empty",
        "large.md": "has 1,001 bytes, the limit is 1,000",
        "lfs.md": "is kept in Git LFS",
    }


async def test_the_number_of_files_is_limited(repository):
    repository.write_all({f"{number}.md": "hello" for number in range(5)})
    files, passed_over = await indexed(repository.folder, max_files=3)
    assert set(files) == {"0.md", "1.md", "2.md"}
    assert passed_over == {"3.md": "the limit of 3 files is reached"}
    files, passed_over = await indexed(repository.folder, max_files=5)
    assert (len(files), passed_over) == (5, {})


async def test_a_tree_that_unfolds_without_end_is_left_at_the_limit_of_files(repository):
    repository.write_all({"a.md": "hello"})
    unfold(repository, f"blob {repository.git('rev-parse', 'HEAD:a.md').decode()}", "docs", 12)
    files, _ = await indexed(repository.folder, max_files=20)
    assert len(files) == 20


@pytest.mark.attack("exhausted resources")
@pytest.mark.parametrize("name", ["vendor", "docs"])
@pytest.mark.parametrize("full", [True, False], ids=["files", "empty folders"])
async def test_a_tree_that_unfolds_without_end_is_refused_at_the_limit_of_entries(repository, monkeypatch, name, full):
    monkeypatch.setattr(module, "_MOST_ENTRIES", 1000)
    repository.write_all({"a.md": ""})
    empty = repository.git("mktree", input=b"").decode()
    blob = repository.git("rev-parse", "HEAD:a.md").decode()
    unfold(repository, f"blob {blob}" if full else f"tree {empty}", name, 12)
    async with cloned(str(repository.folder)) as checkout:
        for listing in (paths_of(checkout), drained(files_of(checkout))):
            with pytest.raises(ValidationError, match="more than 1,000 files and folders"):
                await listing


async def test_a_repository_may_have_as_many_entries_as_the_limit(repository, monkeypatch):
    repository.write_all({"a/b.md": "hello", "c.md": "hello"})
    monkeypatch.setattr(module, "_MOST_ENTRIES", 3)
    assert set((await indexed(repository.folder))[0]) == {"a/b.md", "c.md"}
    monkeypatch.setattr(module, "_MOST_ENTRIES", 2)
    with pytest.raises(ValidationError, match="more than 2 files"):
        await indexed(repository.folder)


async def test_the_paths_of_a_repository_are_those_of_its_files_and_no_folders(repository):
    repository.write_all({"a/b/c.md": "hello", "vendor/d.py": "hello", "ünï.bin": b"\0"})
    async with cloned(str(repository.folder)) as checkout:
        assert await paths_of(checkout) == {"a/b/c.md", "vendor/d.py", "ünï.bin"}


async def test_a_large_repository_is_left(repository):
    repository.write_all({"a.bin": os.urandom(200_000)})
    with pytest.raises(ValidationError, match="larger than 100,000 bytes"):
        async with cloned(str(repository.folder), max_clone_bytes=100_000):
            pass


async def test_a_clone_that_takes_too_long_ends_with_its_processes(repository, monkeypatch, tmp_path):
    repository.write_all({"a.md": "hello"})
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    version = 'case "$*" in *version) echo git version 2.99; exit;; esac'
    program.write_text(f"#!/bin/sh\n{version}\nsleep 600 & echo $! > {tmp_path}/pid\nwait\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with pytest.raises(ValidationError, match=r"within 0\.5 seconds"):
        async with cloned(str(repository.folder), seconds=0.5):
            pass
    child = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    assert not child.exists() or child.read_text().split()[2] == "Z"


@pytest.mark.attack("exhausted resources")
async def test_a_server_that_sends_next_to_nothing_is_left(repository, monkeypatch):
    assert "http.lowSpeedTime=30" in command._SETTINGS
    monkeypatch.setattr(command, "_SETTINGS", (*command._SETTINGS, "http.lowSpeedTime=1"))

    async def silent(_reader, _writer):
        await asyncio.Event().wait()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(ValidationError, match=r"git says.*too slow"):
        async with cloned(f"http://127.0.0.1:{port}/a.git", allow=["127.0.0.1"]):
            pass
    server.close()


async def test_a_clone_can_be_kept(repository, tmp_path, monkeypatch):
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    repository.write_all({"a.md": "hello"})
    async with cloned(str(repository.folder), keep=True) as checkout:
        pass
    assert checkout.folder.is_dir()
    with pytest.raises(ValidationError):
        async with cloned("ext::sh", keep=True):
            pass
    assert list(tmp_path.glob("cragside-repository-*")) == [checkout.folder.parent]


async def test_an_empty_repository_is_a_failure_with_a_reason(repository):
    with pytest.raises(ValidationError, match="has no commit"):
        await indexed(repository.folder)


@pytest.mark.parametrize("source", ["", ".", "nowhere"])
async def test_a_folder_that_is_no_repository_is_a_failure_with_a_way_out(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValidationError, match="cragside ingest --dir"):
        await indexed(source)


async def test_without_git_the_error_says_so(repository, monkeypatch):
    monkeypatch.setattr(command.shutil, "which", lambda _: None)
    with pytest.raises(ConfigurationError, match="Install git"):
        await indexed(repository.folder)


async def test_an_old_git_is_refused(repository, monkeypatch):
    monkeypatch.setattr(command, "_OLDEST", (99, 0))
    with pytest.raises(ConfigurationError, match=r"git 2\.37 or later"):
        await indexed(repository.folder)
