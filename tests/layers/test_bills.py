"""The bills of materials beside the layers list what the layers hold."""

import json
from importlib.metadata import distributions
from typing import Any

import pytest

pytestmark = pytest.mark.layers


def bill_of(built: Any, layer: str) -> Any:
    folder = built.folder(layer)
    return json.loads(folder.with_name(f"{folder.name}.cdx.json").read_text())


HELD = {
    "lightrag": {"lightrag-hku", "numpy", "wordllama"},
    "drivers": {"asyncpg", "neo4j"},
    "parsers": {"pypdfium2"},
    "traces": {"opentelemetry-sdk"},
}


@pytest.mark.parametrize("layer", HELD)
def test_the_bill_of_materials_of_a_layer_of_libraries_equals_its_content(built: Any, layer: str) -> None:
    document = bill_of(built, layer)
    listed = {(each["name"], each["version"]) for each in document["components"]}
    found = distributions(path=[str(built.folder(layer) / "python")])
    assert listed == {
        (each.metadata["Name"].lower().replace("_", "-").replace(".", "-"), each.version) for each in found
    }
    assert HELD[layer] <= {name for name, _ in listed}
    assert not {"boto3", "pandas", "uvicorn"} & {name for name, _ in listed}
    for each in document["components"]:
        assert each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}"
        hashes = [said["alg"] for source in each["externalReferences"] for said in source["hashes"]]
        assert hashes
        assert set(hashes) == {"SHA-256"}


def test_the_bill_of_materials_of_the_core_layer_has_only_cragside(built: Any) -> None:
    document = bill_of(built, "core")
    assert [each["name"] for each in document["components"]] == ["cragside"]
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
