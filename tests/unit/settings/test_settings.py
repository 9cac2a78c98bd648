from pathlib import Path

import pytest

from cragside.domain.errors import ConfigurationError
from cragside.settings import BucketAddress, Settings, load_settings, variable_of


@pytest.mark.parametrize("empty", ["", "  "])
@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_an_empty_variable_counts_as_unset(name: str, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {variable_of(name): empty}
    monkeypatch.setenv(variable_of(name), empty)
    assert getattr(load_settings(environment), name) == getattr(load_settings({}), name)
    monkeypatch.delenv(variable_of(name))
    assert load_settings(environment) == load_settings({})


def test_a_blank_around_the_token_does_not_lock_everybody_out() -> None:
    token = load_settings({"RAG_API_TOKEN": " s3cret \n"}).api_token
    assert token is not None
    assert token.get_secret_value() == "s3cret"


def test_a_home_may_be_in_a_bucket_if_its_hash_is_given() -> None:
    settings = load_settings({"RAG_HOME": " s3://a-bucket/some/kb/ ", "RAG_HOME_SHA256": "AB" * 32 + "\n"})
    assert settings.home == BucketAddress("a-bucket", "some/kb")
    assert str(settings.home) == "s3://a-bucket/some/kb"
    assert settings.home_sha256 == "ab" * 32
    with pytest.raises(ConfigurationError, match="set RAG_HOME_SHA256 to what `cragside bake` printed"):
        load_settings({"RAG_HOME": "s3://a-bucket"})


@pytest.mark.parametrize("home", ["gs://a-bucket/kb", "s3://", "s3://UPPER/kb", "https://a.example/kb", "s3://a/../b"])
def test_a_home_that_is_neither_a_folder_nor_in_s3_is_an_error(home: str) -> None:
    with pytest.raises(ConfigurationError, match=r"RAG_HOME: .* s3://bucket/prefix"):
        load_settings({"RAG_HOME": home, "RAG_HOME_SHA256": "0" * 64})


@pytest.mark.parametrize("given", ["abc", "0" * 63, "0" * 65, "g" * 64])
def test_a_hash_has_64_hexadecimal_digits(given: str) -> None:
    with pytest.raises(ConfigurationError, match="RAG_HOME_SHA256"):
        load_settings({"RAG_HOME_SHA256": given})


def test_tokens_are_bound_to_workspaces() -> None:
    settings = load_settings({"RAG_WORKSPACE_TOKENS": '{" hush ": ["a"], "two": ["a", "b.c"]}'})
    assert settings.bound_tokens == {"hush": ("a",), "two": ("a", "b.c")}
    assert settings.asks_for_token
    assert "hush" not in repr(settings)


@pytest.mark.parametrize(
    "given",
    [
        "hush",
        '{"hush": ["a"]',
        '["hush"]',
        "{}",
        "null",
        '{"": ["hush"]}',
        '{" ": ["hush"]}',
        '{"hush": []}',
        '{"hush": ""}',
        '{"hush": "a"}',
        '{"hush": [""]}',
        '{"hush": ["../a"]}',
        '{"hush": [7]}',
        '{"hush": {"a": 1}}',
        '{"hush": ["a"], "hush": ["b"]}',
        '{"hu\\u0000sh": ["a"]}',
        '{"hush\\ud800": ["a"]}',
        "[" * 100_000,
    ],
)
def test_bound_tokens_that_cannot_be_read_are_an_error_that_shows_none(given: str) -> None:
    with pytest.raises(ConfigurationError, match="RAG_WORKSPACE_TOKENS") as raised:
        load_settings({"RAG_WORKSPACE_TOKENS": given})
    assert "hush" not in raised.value.message


def test_the_common_token_cannot_be_bound() -> None:
    with pytest.raises(ConfigurationError, match="Give each its own") as raised:
        load_settings({"RAG_API_TOKEN": "hush", "RAG_WORKSPACE_TOKENS": '{"hush": ["a"]}'})
    assert "hush" not in raised.value.message


def test_uploads_go_to_a_bucket() -> None:
    assert load_settings({}).uploads is None
    assert str(load_settings({"RAG_UPLOADS": " s3://a-bucket/in/ "}).uploads) == "s3://a-bucket/in"
    assert str(load_settings({"RAG_UPLOADS": "s3://a-bucket"}).uploads) == "s3://a-bucket"


@pytest.mark.parametrize("place", ["in", "/srv/in", "https://a-bucket.s3.amazonaws.com/in", "s3://", "s3://A_B/in"])
def test_uploads_go_nowhere_else(place: str) -> None:
    with pytest.raises(ConfigurationError, match=r"RAG_UPLOADS: .*s3://bucket/prefix"):
        load_settings({"RAG_UPLOADS": place})


@pytest.mark.parametrize(
    ("host", "upstream"),
    [
        ("127.0.0.1:11435", "http://127.0.0.1:11435"),
        ("gpu", "http://gpu:11434"),
        (":8080", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:9", "http://127.0.0.1:9"),
        ("[::]:11434", "http://[::1]:11434"),
        ("::1", "http://[::1]:11434"),
        ("[::1]:9", "http://[::1]:9"),
        ("http://gpu", "http://gpu"),
        ("https://ollama.example.com/base/", "https://ollama.example.com/base"),
        ("http://gpu:11434/", "http://gpu:11434"),
        (" ", "http://127.0.0.1:11434"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(host, upstream):
    settings = load_settings({"OLLAMA_HOST": host})
    assert settings.upstream == upstream
    assert settings.ollama_base_url is None, "the embedded models go on doing all other work"


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("ollama+http://gpu:11434/", ("http://gpu:11434", None, "http://gpu:11434")),
        ("openai+https://models.example/v1/", (None, "https://models.example/v1", "https://models.example")),
        ("openai+http://gate:4000/llm/v1", (None, "http://gate:4000/llm/v1", "http://gate:4000/llm")),
    ],
)
def test_a_model_host_says_which_api_it_speaks(host, addresses):
    settings = load_settings({"RAG_MODEL_HOST": host, "OLLAMA_HOST": "elsewhere"})
    assert (settings.ollama_address, settings.openai_address, settings.upstream) == addresses


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"RAG_MODEL_HOST": "http://gpu:11434"}, "RAG_MODEL_HOST: .*Write ollama"),
        ({"RAG_MODEL_HOST": "vllm+http://gpu/v1"}, "RAG_MODEL_HOST: .*Write ollama"),
        ({"RAG_MODEL_HOST": "openai+https://models.example"}, "ends in /v1"),
        ({"RAG_MODEL_HOST": "openai+https://u:hush@models.example/v1"}, "set OPENAI_API_KEY instead"),
        ({"RAG_MODEL_HOST": "openai+https://models.example/v1?key=hush"}, r"no \? and no #"),
        ({"RAG_MODEL_HOST": "ollama+http://gpu", "OLLAMA_BASE_URL": "http://gpu"}, "are both set"),
        ({"OPENAI_API_KEY": "hush\r\nX: y"}, "OPENAI_API_KEY: .*characters"),
        ({"OPENAI_API_KEY": "hush", "OPENAI_API_KEY_SECRET": "arn"}, "are both set"),
    ],
)
def test_a_wrong_model_host_is_refused_without_its_secrets(environment, said):
    with pytest.raises(ConfigurationError, match=said) as refused:
        load_settings(environment)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("URL", "gpu:8080/rerank", "Write http://HOST:PORT/v1/rerank, or https://HOST/v1/rerank."),
        ("URL", "ftp://gpu/rerank", "Write http://HOST:PORT/v1/rerank, or https://HOST/v1/rerank."),
        ("URL", "http://", "Input should be a valid URL, empty host."),
        ("URL", "http://u:hush@gpu:99999/rerank", "Input should be a valid URL, invalid port number."),
        ("URL", "http://u:hush@gpu/rerank", "It has a user or a password; set RAG_RERANK_API_KEY instead."),
        ("URL", "http://gpu/rerank?key=hush", "It ends behind the path: no ? and no #."),
        ("URL", "http://gpu/rerank#hush", "It ends behind the path: no ? and no #."),
        ("API_KEY", "hush\u00fc", "It has characters that a key cannot have. Write printable ASCII without blanks."),
        ("API_KEY", "hu sh", "It has characters that a key cannot have. Write printable ASCII without blanks."),
        ("SCORES", "sigmoid", "Input should be 'probability' or 'logit'."),
        *(("CALIBRATION", each, "Write SLOPE,INTERCEPT, such as 0.8,-1.5.") for each in ("1", "1,2,3", "a,b", "1;2")),
        *(
            ("CALIBRATION", each, "Write a SLOPE above 0 and a finite INTERCEPT, such as 0.8,-1.5.")
            for each in ("0,1", "-1,0", "nan,0", "inf,0", "1,nan", "1,-inf", "1e400,0")
        ),
    ],
)
def test_a_wrong_rerank_setting_says_what_to_write_and_quotes_nothing(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_settings({f"RAG_RERANK_{name}": value})
    assert refused.value.message == f"RAG_RERANK_{name}: {said}"


def test_rerank_settings_that_are_right_or_empty_are_read() -> None:
    settings = load_settings({"RAG_RERANK_URL": " http://gpu/rerank ", "RAG_RERANK_CALIBRATION": " 0.8, -1.5 "})
    assert (settings.rerank_url, settings.rerank_calibration) == ("http://gpu/rerank", (0.8, -1.5))
    empty = load_settings({f"RAG_RERANK_{name}": " " for name in ("URL", "MODEL", "API_KEY", "CALIBRATION")})
    assert (empty.rerank_url, empty.rerank_model, empty.rerank_calibration) == (None, None, None)
    with pytest.raises(ConfigurationError, match=r"are both set\. Unset one"):
        load_settings({"RAG_RERANK_API_KEY": "hush", "RAG_RERANK_API_KEY_SECRET": "arn"})


def test_ollama_base_url_comes_before_ollama_host():
    settings = load_settings({"OLLAMA_HOST": "one", "OLLAMA_BASE_URL": "http://two:1"})
    assert settings.upstream == "http://two:1"


def test_an_impossible_ollama_host_is_named():
    with pytest.raises(ConfigurationError, match="OLLAMA_HOST"):
        load_settings({"OLLAMA_HOST": "http://["})


def test_a_given_environment_is_all_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("RAG_THRESHOLD", "0.9")
    given = load_settings({"RAG_THRESHOLD": "0.5"})
    assert (given.ollama_base_url, given.threshold) == (None, 0.5)
    assert load_settings().threshold == 0.9


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"RAG_GRAPH_STORAGE": "PGGraphStorage"}, "which needs POSTGRES_URI. Set POSTGRES_URI, or unset RAG_GRAPH"),
        ({"RAG_KV_STORAGE": "PGKVStorage"}, "RAG_KV_STORAGE is PGKVStorage, which needs POSTGRES_URI"),
        (
            {"RAG_GRAPH_STORAGE": "Neo4JStorage", "POSTGRES_URI": "postgresql://u:hush@db/rag"},
            "RAG_GRAPH_STORAGE is Neo4JStorage, which needs NEO4J_URI",
        ),
        ({"NEO4J_URI": "neo4j://graphs:7687"}, "NEO4J_URI is set without POSTGRES_URI"),
        (
            {"RAG_VECTOR_STORAGE": "SqliteVectorStorage", "POSTGRES_URI": "postgresql://u:hush@db/rag"},
            "RAG_VECTOR_STORAGE is SqliteVectorStorage, but POSTGRES_URI is set. Unset one of them",
        ),
        (
            {"RAG_DOC_STATUS_STORAGE": "MongoDocStatusStorage"},
            "RAG_DOC_STATUS_STORAGE: there is no storage of this name. Unset it, or choose SqliteDocStatusStorage; oth",
        ),
        (
            {"RAG_GRAPH_STORAGE": "MemgraphStorage", "POSTGRES_URI": "postgresql://u:hush@db/rag"},
            "Unset it, or choose PGTableGraphStorage or PGGraphStorage or Neo4JStorage.",
        ),
    ],
)
def test_a_storage_that_cannot_be_is_an_error(environment: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        load_settings(environment)
    assert said in str(error.value)
    assert "hush" not in str(error.value)


def test_the_default_storages_may_be_named() -> None:
    embedded = ("SqliteKVStorage", "SqliteVectorStorage", "SqliteGraphStorage", "SqliteDocStatusStorage")
    shared = ("PGKVStorage", "PGVectorStorage", "PGTableGraphStorage", "PGDocStatusStorage")
    names = [f"RAG_{role}_STORAGE" for role in ("KV", "VECTOR", "GRAPH", "DOC_STATUS")]
    assert tuple(load_settings(dict(zip(names, embedded, strict=True))).storages.values()) == embedded
    environment = {**dict(zip(names, shared, strict=True)), "POSTGRES_URI": "postgresql://u:hush@db/rag"}
    assert tuple(load_settings(environment).storages.values()) == shared


def test_generations_are_in_a_bucket_and_nowhere_else() -> None:
    settings = load_settings({"RAG_GENERATIONS": "s3://a-bucket/kb", "RAG_GENERATION_SECONDS": "30"})
    assert (str(settings.generations), str(settings.store_place)) == ("s3://a-bucket/kb", "s3://a-bucket/kb")
    assert settings.generation_seconds == 30
    for other in (
        {"POSTGRES_URI": "postgresql://rag@host/rag"},
        {"RAG_HOME": "s3://a-bucket/kb", "RAG_HOME_SHA256": "0" * 64},
    ):
        with pytest.raises(ConfigurationError, match=r"RAG_GENERATIONS is set, and .* names another store"):
            load_settings({"RAG_GENERATIONS": "s3://a-bucket/kb", **other})
    assert settings.in_files(Path("/kb")).generations is None
