"""The fetcher of a service that has no way to the Internet."""

from typing import NoReturn

from typing_extensions import override

from cragside.domain.characters import encodable
from cragside.ports.files import FETCHING_IS_OFF, FetchFailed, PageFetcher


class RefusingFetcher(PageFetcher):
    """Refuses every URL at once, instead of letting clients wait for a connection that cannot come about."""

    @override
    async def fetch(self, url: str, *, workspace: str = "") -> NoReturn:
        raise FetchFailed(encodable(url), "fetching_is_off", FETCHING_IS_OFF)

    @override
    async def close(self) -> None:
        pass
