"""`benchmarks.budget` shares the CPU of a request among its layers: nothing is lost, and nothing counts twice."""

from typing import Any

import pytest

from benchmarks.budget import LAYERS, REST, Profile, budget, layer_of

CORE = "/there/layers/core/python/cragside"
RELAY = (f"{CORE}/entrypoints/proxy/relay.py", 1, "relay")
ACCESS = (f"{CORE}/entrypoints/access.py", 1, "grant")
LOWER = ("~", 0, "<method 'lower' of 'bytes' objects>")
UNKNOWN = (f"{CORE}/new/room.py", 1, "work")


def stats(own: dict[Any, float], calls: dict[Any, dict[Any, int]]) -> dict[Any, Any]:
    """A profile as `pstats` has it, of functions with their own seconds and the calls of each caller."""
    return {
        function: (1, sum(calls.get(function, {}).values()) or 1, seconds, seconds, {
            caller: (number, number, seconds, seconds) for caller, number in calls.get(function, {}).items()
        })
        for function, seconds in own.items()
    }  # fmt: skip


@pytest.mark.parametrize(
    ("function", "layer"),
    [
        (RELAY, "relay"),
        (ACCESS, "access"),
        (("/there/site-packages/uvicorn/server.py", 1, "serve"), "connection"),
        (("/there/site-packages/langgraph/pregel/main.py", 1, "ainvoke"), "LangGraph"),
        (("~", 0, "<method 'run_until_complete' of 'uvloop.loop.Loop' objects>"), "connection"),
        (UNKNOWN, REST),
        (("/there/site-packages/unheard_of/main.py", 1, "run"), REST),
        (LOWER, None),
        (("/there/lib/python3.11/json/decoder.py", 1, "decode"), None),
    ],
)
def test_a_function_belongs_to_the_layer_that_names_its_file(function: Any, layer: str | None) -> None:
    assert layer_of(function) == layer


def test_the_layers_have_all_of_a_requests_cpu_and_calls() -> None:
    profile = stats({RELAY: 3.0, ACCESS: 1.0, LOWER: 4.0, UNKNOWN: 2.0}, {LOWER: {RELAY: 3, ACCESS: 1}})
    found = budget(profile, (0.0, 0.0), [], 1000.0, 2)
    assert {layer: share.cpu_us for layer, share in found.layers.items() if share.cpu_us} == pytest.approx(
        {"relay": 600, "access": 200, REST: 200}
    )
    assert found.calls == pytest.approx(7 / 2)
    assert found.rest == ["room.py:work 200 µs"]
    assert set(found.layers) == {*LAYERS, REST}


def test_the_profilers_own_time_is_subtracted() -> None:
    profile = Profile(stats({RELAY: 3.0, LOWER: 4.0}, {LOWER: {RELAY: 4}}), (0.5, 0.25))
    assert profile.own == pytest.approx({RELAY: 3.0 - 0.5 - 4 * 0.25, LOWER: 4.0 - 4 * 0.5})


def test_functions_that_call_each_other_end_somewhere() -> None:
    inner, outer = ("/lib/json/encoder.py", 1, "inner"), ("/lib/json/encoder.py", 2, "outer")
    profile = Profile(
        stats({inner: 1.0, outer: 1.0, RELAY: 1.0}, {inner: {outer: 1}, outer: {inner: 1, RELAY: 1}}), (0, 0)
    )
    assert sum(profile.layers_of(inner).values()) == pytest.approx(1)
    assert sum(profile.layers_of(outer).values()) == pytest.approx(1)


def test_blocks_count_where_they_are_allocated() -> None:
    profile = stats({RELAY: 1.0, ACCESS: 1.0}, {})
    found = budget(profile, (0.0, 0.0), [[*RELAY, 10], [*UNKNOWN, 4]], 100.0, 2)
    assert {layer: share.blocks for layer, share in found.layers.items() if share.blocks} == {"relay": 5, REST: 2}


def test_what_runs_beside_the_requests_is_not_reached_by_one() -> None:
    profile = stats({RELAY: 1.0, ACCESS: 1.0, LOWER: 1.0}, {RELAY: {LOWER: 10}, ACCESS: {LOWER: 1}})
    found = budget(profile, (0.0, 0.0), [], 100.0, 10)
    assert (found.functions, found.files) == (1, 1)
