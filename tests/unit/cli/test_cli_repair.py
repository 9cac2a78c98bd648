"""`cragside repair` names the workspaces whose databases do not agree, and builds these anew."""

from cli_services import errors_of, printed

from cragside.domain.errors import ServiceUnavailable

EMPTY = "the documents name 3 entities and 1 relations, but the graph has 0 and 0"


def test_workspaces_that_differ_are_built_anew_and_the_others_stay(run, container):
    container.names, container.disagreements = ["good", "lost"], {"lost": EMPTY}
    said = printed(run("repair"))
    assert said.splitlines() == [
        "good: all databases agree with the documents",
        f"lost: {EMPTY}",
        "lost: built anew from 1 text",
    ]
    assert container.reindexed == ["lost"]


def test_a_check_changes_nothing_and_fails_when_a_workspace_differs(run, container):
    container.names, container.disagreements = ["good", "lost"], {"lost": EMPTY}
    assert "run cragside repair" in printed(run("repair", "--check"), 1)
    assert container.reindexed == []
    assert run("repair", "--check", "--workspace", "good").exit_code == 0


def test_one_workspace_can_be_named(run, container):
    container.names, container.disagreements = ["good", "lost"], {"lost": EMPTY}
    assert run("repair", "--workspace", "good").stdout == "good: all databases agree with the documents\n"
    assert container.reindexed == []


def test_without_workspaces_there_is_nothing_to_repair(run):
    assert run("repair").stdout == "There are no workspaces\n"


def test_a_database_that_cannot_be_read_is_an_error(run, container):
    container.names, container.error = ["good"], ServiceUnavailable("knowledge_base", "Neo4j does not answer.")
    assert "Neo4j does not answer" in errors_of(run("repair"), 3)


def test_a_workspace_that_fails_keeps_no_other_one_from_being_repaired(run, container):
    container.names, container.disagreements = ["bad", "lost"], {"lost": EMPTY}
    container.failing = {"bad": ServiceUnavailable("knowledge_base", "It was built with another storage.")}
    assert "bad: knowledge_base: It was built with another storage." in errors_of(run("repair"), 3)
    assert container.reindexed == ["lost"]
