from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.knowledge import Knowledge


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    """An application on an empty store, without pages to fetch."""
    async with Knowledge(tmp_path, pages={}) as built:
        yield built
