"""Fixtures of the tests of fetching."""

import pytest

from cragside.adapters.web import guard
from tests.unit.web.loopback_sites import SECRET, STAND_IN, VICTIM, Net, Site, Watch, answer, watches


@pytest.fixture
async def net(monkeypatch):
    victim, site = Site(VICTIM), Site(STAND_IN)
    victim.default = answer(SECRET)
    await victim.start()
    await site.start(victim.port)
    # Else everything hostile would be refused for its port, and no other rule be tried.
    monkeypatch.setattr(guard, "WEB_PORTS", guard.WEB_PORTS | {victim.port})
    watch = Watch()
    watches.append(watch)
    net = Net(victim.port, site, victim, watch)
    yield net
    watches.remove(watch)
    for fetcher in net.fetchers:
        await fetcher.close()
    await site.stop()
    await victim.stop()
