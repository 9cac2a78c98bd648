"""The flight skips where the emulator is missing."""

import pytest

from tests.services.requirement import stay_down


@pytest.mark.parametrize("environment", [{}, {"CI": ""}, {"E2E": "optional"}, {"CI": "true", "E2E": "optional"}])
def test_the_emulator_test_is_skipped_unless_it_is_required(environment: dict[str, str]) -> None:
    with pytest.raises(pytest.skip.Exception, match="no npm"):
        stay_down("no npm", environment, "E2E")


@pytest.mark.parametrize("environment", [{"CI": "true"}, {"E2E": "required"}, {"CI": "true", "E2E": ""}])
def test_the_emulator_test_fails_where_it_is_required_and_cannot_run(environment: dict[str, str]) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"no npm\nE2E=optional"):
        stay_down("no npm", environment, "E2E")
