"""The compose file, really brought up. The tests go on from each other, in the order in which they stand here."""

import json
import time

import pytest

from tests import compose
from tests.compose import services
from tests.containers.engine import Engine, Failed
from tests.containers.report import say
from tests.containers.stack import API, PROJECT, Stack
from tests.services import ollama

pytestmark = [pytest.mark.containers, pytest.mark.enable_socket, pytest.mark.timeout(1200)]

RUNNING = [name for name, service in services().items() if "cpu" in service.get("profiles", ["cpu"])]
LASTING = [name for name in RUNNING if not compose.is_once(services()[name])]
ONCE = [name for name in RUNNING if compose.is_once(services()[name])]
QUESTION = "Who lit Cragside?"
TEXT = "# Cragside\nJoseph Swan lit Cragside with his lamps in 1880."
# LISTEN on 127.0.0.1:8642, as /proc/net/tcp writes it.
LOOPBACK = "0100007F:21C2"


@pytest.mark.parametrize("name", sorted(compose.secrets()))
def test_the_file_is_refused_without_a_secret(stack: Stack, name: str) -> None:
    for left in ({}, {name: ""}):
        stack.write({other: value for other, value in stack.variables.items() if other != name} | left)
        with pytest.raises(Failed, match=rf"{name}.*is not set; \.env\.example says how to make it"):
            stack.compose("config", "--quiet")
    stack.write(stack.variables)


@pytest.mark.parametrize("profile", ["cpu", "gpu", ""])
def test_compose_accepts_the_file_with_each_profile(stack: Stack, profile: str) -> None:
    stack.write({**stack.variables, "COMPOSE_PROFILES": profile})
    active = set(stack.compose("config", "--services").split())
    stack.write(stack.variables)
    assert active == {name for name, each in services().items() if profile in each.get("profiles", [profile])}


def test_the_stack_comes_up_in_order(stack: Stack) -> None:
    began = time.time()
    stack.up()
    say(f"up, all healthy: {time.time() - began:.0f} s")
    happened = stack.events(began)

    def at(service: str, event: str) -> int:
        return next(index for index, (name, action) in enumerate(happened) if (name, action) == (service, event))

    for name in RUNNING:
        for needed in services()[name].get("depends_on", {}):
            if needed in RUNNING:
                ready = "die" if needed in ONCE else "health_status: healthy"
                assert at(needed, ready) < at(name, "start"), f"{name} did not wait for {needed}"
    say("each service started after all that it depends on was healthy, or had done its work")


@pytest.mark.parametrize("name", LASTING)
def test_a_service_is_healthy(stack: Stack, name: str) -> None:
    assert stack.is_healthy(name)
    assert stack.container(name)["RestartCount"] == 0


@pytest.mark.parametrize("name", ONCE)
def test_a_service_that_ends_has_done_its_work(stack: Stack, name: str) -> None:
    state = stack.container(name)["State"]
    assert (state["Running"], state["ExitCode"]) == (False, 0)


@pytest.mark.parametrize("name", LASTING)
def test_a_service_has_no_capability_and_a_bound_of_memory(stack: Stack, name: str) -> None:
    status = stack.execute(name, "cat", "/proc/1/status")
    rights = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {rights[key] for key in ("CapEff", "CapPrm", "CapBnd")} == {"0000000000000000"}
    assert rights["NoNewPrivs"] == "1"
    host = stack.container(name)["HostConfig"]
    assert host["Memory"] > 0
    assert host["ReadonlyRootfs"] == (name != "neo4j")


@pytest.mark.parametrize("name", ["api", "worker", "postgres"])
def test_our_images_run_without_root_and_write_to_their_volume_alone(stack: Stack, name: str) -> None:
    assert int(stack.execute(name, "id", "-u")) > 0
    home = "/var/lib/postgresql" if name == "postgres" else "/var/lib/cragside"
    assert stack.fails(name, "touch", "/etc/written")
    stack.execute(name, "touch", f"{home}/written", "/tmp/written")


def test_only_cragside_listens_on_this_machine_and_on_loopback_alone(stack: Stack) -> None:
    published = {address for address in stack.engine.listening() if not address.startswith("0B00007F")}
    assert published == {LOOPBACK}
    say("of all services, only cragside listens on the machine, on 127.0.0.1:8642")


def test_search_and_models_do_not_reach_the_databases(stack: Stack) -> None:
    for name in ("searxng", "ollama"):
        assert stack.fails(name, "getent", "hosts", "postgres")
        networks = stack.container(name)["NetworkSettings"]["Networks"]
        assert list(networks) == [f"{PROJECT}_web"]
    stack.execute("api", "getent", "hosts", "postgres")
    inside = json.loads(stack.engine.docker("network", "inspect", f"{PROJECT}_stores"))[0]
    assert inside["Internal"]


def test_no_image_holds_a_secret(stack: Stack) -> None:
    for name in RUNNING:
        image = stack.container(name)["Image"]
        told = stack.engine.docker("image", "inspect", image) + stack.engine.docker("history", "--no-trunc", image)
        assert not [secret for secret, value in stack.secrets.items() if value in told]


def test_no_log_holds_a_secret(stack: Stack) -> None:
    told = stack.compose("logs", "--no-color")
    assert not [secret for secret, value in stack.secrets.items() if value in told]


def test_the_service_asks_for_its_token(stack: Stack) -> None:
    assert stack.ask("GET", "/healthz", token="").status == 200
    assert stack.ask("GET", "/v1/documents", token="").status == 401
    assert stack.ask("GET", "/v1/documents", token="wrong").status == 401
    assert stack.ask("GET", "/v1/documents").status == 200


def test_the_databases_refuse_a_wrong_password(stack: Stack) -> None:
    connect = (
        "import asyncio, asyncpg, sys; "
        "asyncio.run(asyncpg.connect(host='postgres', user=sys.argv[1], password='wrong', database='cragside'))"
    )
    for user in ("cragside", "postgres"):
        with pytest.raises(Failed, match="InvalidPasswordError"):
            stack.execute("api", "python", "-c", connect, user)
    ask = "import neo4j; neo4j.GraphDatabase.driver('bolt://neo4j', auth=('neo4j', 'wrong')).verify_connectivity()"
    with pytest.raises(Failed, match="AuthError"):
        stack.execute("api", "python", "-c", ask)


def test_postgresql_has_both_extensions(stack: Stack) -> None:
    asked = "SELECT extname || ' ' || extversion FROM pg_extension WHERE extname IN ('age', 'vector') ORDER BY 1"
    found = stack.execute("postgres", "psql", "-U", "postgres", "-Atc", asked, "cragside").split("\n")
    assert [row.split()[0] for row in found if row] == ["age", "vector"]
    version = stack.execute("postgres", "postgres", "--version").split()[2]
    say(f"PostgreSQL {version} with {', '.join(filter(None, found))}")


def test_everything_that_is_configured_answers(stack: Stack) -> None:
    stack.until(lambda: stack.ask("GET", "/ready").status == 200, "/ready says yes")
    assert stack.told("GET", "/ready")["not_ready"] == []


def test_searxng_answers_in_json(stack: Stack) -> None:
    ask = "import urllib.request as r; print(r.urlopen('http://searxng:8080/search?q=x&format=json').read().decode())"
    assert "results" in json.loads(stack.execute("api", "python", "-c", ask))


def test_a_document_is_indexed_through_the_queue_and_found(stack: Stack) -> None:
    began = time.time()
    stack.add("cragside.md", TEXT)
    context = stack.evidence(QUESTION)
    assert context["verdict"] == "local"
    assert context["degraded"] == []
    say(f"/v1/documents, queue, worker, /rag with evidence: {time.time() - began:.0f} s, nothing degraded")


def test_its_graph_is_in_neo4j_and_its_text_in_postgresql(stack: Stack) -> None:
    count = (
        "import neo4j, os; driver = neo4j.GraphDatabase.driver('bolt://neo4j', auth=('neo4j', "
        "os.environ['NEO4J_PASSWORD'])); print(driver.execute_query('MATCH (n) RETURN count(n)').records[0][0])"
    )
    stack.until(lambda: int(stack.execute("api", "python", "-c", count)) > 0, "the graph is in Neo4j")
    rows = stack.execute(
        "postgres", "psql", "-U", "postgres", "-Atc", "SELECT count(*) FROM lightrag_doc_chunks", "cragside"
    )
    assert int(rows) > 0


def test_ollama_answers_through_the_proxy_with_evidence(stack: Stack) -> None:
    messages = [{"role": "user", "content": f"/rag {QUESTION}"}]
    body = {"model": ollama.CHAT_MODEL, "messages": messages, "stream": False}
    token = {"Authorization": f"Bearer {stack.secrets['CRAGSIDE_API_TOKEN']}"}
    answer = stack.engine.ask("POST", f"{API}/api/chat", {**body, "options": {"num_predict": 20}}, token, seconds=300)
    assert answer.status == 200, answer.text
    assert json.loads(answer.text)["message"]["content"]
    say("/rag through the proxy: an answer of Ollama's")


@pytest.mark.parametrize("name", LASTING)
def test_after_a_restart_of_a_service_all_goes_on(stack: Stack, name: str) -> None:
    began = time.time()
    stack.compose("restart", "--timeout", "20", name)
    stack.until(lambda: stack.is_healthy(name), f"{name} is healthy")
    stack.until(lambda: stack.ask("GET", "/ready").status == 200, "/ready says yes")
    context = stack.evidence(QUESTION)
    assert context["verdict"] == "local"
    stack.add(
        f"after-{name}.md", f"# After {name}\nThe service {name} was restarted, and the lamps of {name} were lit again."
    )
    assert stack.evidence(f"Which lamps were lit again after {name} was restarted?")["documents"]
    say(f"restart of {name}: healthy, and a document indexed and found: {time.time() - began:.0f} s")


def test_a_document_that_waits_while_the_worker_is_away_is_indexed_by_the_next(stack: Stack) -> None:
    stack.compose("kill", "worker")
    stack.told("POST", "/v1/documents", {"name": "wait.md", "text": "# Wait\nThe ferry waits for the tide until nine."})
    assert stack.told("GET", "/v1/documents?status=pending")["total"] == 1
    stack.compose("start", "worker")
    stack.until(lambda: not stack.told("GET", "/v1/documents?status=pending")["total"], "wait.md is indexed")


def test_a_dump_of_postgresql_and_a_repair_bring_back_what_was_deleted(stack: Stack) -> None:
    began = time.time()
    as_superuser = ["--username", "postgres"]
    stack.execute("postgres", "pg_dump", *as_superuser, "--format", "custom", "--file", "/tmp/dump", "cragside")
    documents = stack.told("GET", "/v1/documents")["documents"]
    (lost,) = [each["id"] for each in documents if each["name"] == "cragside.md"]
    assert stack.ask("DELETE", f"/v1/documents/{lost}").status == 204
    assert "Swan" not in str(stack.evidence(QUESTION))
    stack.compose("stop", "api", "worker")
    restore = ["pg_restore", *as_superuser, "--clean", "--if-exists", "--dbname", "cragside", "/tmp/dump"]
    stack.execute("postgres", *restore)
    stack.up()
    stack.execute("api", "cragside", "repair")
    stack.execute("api", "cragside", "repair", "--check")
    assert "Swan" in str(stack.evidence(QUESTION))
    say(f"dump, deletion, restore, repair of the graph: {time.time() - began:.0f} s")


def test_the_volumes_outlive_the_containers(stack: Stack) -> None:
    began = time.time()
    stack.down()
    stack.up()
    stack.until(lambda: stack.ask("GET", "/ready").status == 200, "/ready says yes")
    assert stack.evidence(QUESTION)["verdict"] == "local"
    # A Neo4j that has just started may take too long for the first question, see docs/neo4j.md.
    stack.until(lambda: stack.evidence(QUESTION)["degraded"] == [], "nothing is degraded")
    say(f"down, up again, and the same evidence: {time.time() - began:.0f} s")


def test_nothing_is_left_when_the_volumes_are_removed(stack: Stack, engine: Engine) -> None:
    stack.down("--volumes")
    label = f"label=com.docker.compose.project={PROJECT}"
    for kind in ("container", "volume", "network"):
        listed = [kind, "ls", "--quiet", "--filter", label, *(["--all"] if kind == "container" else [])]
        assert engine.docker(*listed) == ""
