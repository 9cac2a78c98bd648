import pytest
from synthesis import Synthesiser


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Synthesiser:
    return Synthesiser(tmp_path_factory.mktemp("synthesis"))
