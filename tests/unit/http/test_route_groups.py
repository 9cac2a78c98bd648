from collections.abc import Iterator

import pytest
from fastapi.routing import iter_route_contexts

from cragside.entrypoints.http.request_access import OPEN_ROUTES, RULES
from cragside.entrypoints.http.route_groups import GROUPS, RouteGroup


def paths() -> Iterator[tuple[RouteGroup, str, str]]:
    for group in GROUPS:
        for route in iter_route_contexts(group.routes):
            for method in sorted(route.methods or ()):
                yield group, method, route.path or ""


@pytest.mark.parametrize(("group", "method", "path"), list(paths()))
def test_a_group_finds_each_of_its_routes(group: RouteGroup, method: str, path: str) -> None:
    scope = {"type": "http", "method": method, "path": path.replace("{", "").replace("}", ""), "headers": []}
    assert group.matches(scope)[0].name == "FULL"


def test_the_groups_have_all_routes_that_have_a_rule() -> None:
    found = {f"{method} {path}" for _, method, path in paths()}
    assert found >= {*RULES}
    assert {path for path in OPEN_ROUTES if path != "/console"} <= {path for _, _, path in paths()}


def test_a_group_is_not_asked_for_other_paths() -> None:
    group = RouteGroup("no_such_module", "/graph")
    for path in ("/", "/graphs", "/v1/graph"):
        assert group.matches({"type": "http", "method": "GET", "path": path, "headers": []})[0].name == "NONE"
    assert group.matches({"type": "websocket", "path": "/graph"})[0].name == "NONE"
