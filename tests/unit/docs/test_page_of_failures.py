"""The page about failures has the cells that the tests of faults run, with the outcomes that they assert."""

import re

from tests.blocks import ROOT
from tests.faults.faults import HOW
from tests.faults.matrix import CELLS, FAULTS, table

PAGE = (ROOT / "docs/failures.md").read_text()
TESTS = [path.read_text() for path in (ROOT / "tests/faults").glob("test_failing_*.py")]


def test_the_tables_are_those_of_the_tests() -> None:
    tables = dict(re.findall(r"^### (.+)\n\n((?:\|.*\n)+)", PAGE, re.MULTILINE))
    assert tables == {component: table(component) for component in CELLS}


def test_each_component_is_tested_with_each_fault() -> None:
    assert tuple(HOW) == FAULTS
    assert {fault for cells in CELLS.values() for fault in cells} == set(FAULTS)
    tested = [re.findall(r'Stack\(\s*"([^"]+)"', text) for text in TESTS]
    assert sorted(tested) == sorted([component] for component in CELLS)
    assert all('@pytest.mark.parametrize("fault", FAULTS)' in text for text in TESTS)


def test_each_fault_is_explained() -> None:
    assert tuple(re.findall(r"^- \*\*(\w+)\*\*: ", PAGE, re.MULTILINE)) == FAULTS
