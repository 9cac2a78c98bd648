"""Write the versions of a document in transactions that check the writer's leases."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from datetime import UTC, datetime
from typing import Self

from cragside.domain.document import SourceText
from cragside.store.chunking import Entry, json_of, parts_of, searched_title, title_of
from cragside.store.documents import columns_of
from cragside.store.driver import Changed
from cragside.store.errors import Lease, LedgerDamaged
from cragside.store.exchange import OriginRow, insert
from cragside.store.passages import PassageReads

# ruff: noqa: S608 - statements are put together from names in this module, values are bound


_VERSIONS = "SELECT version FROM crag.document WHERE store = $1"
# The versions of a document that are current, of one document or, without an id, of all.
_CHOSEN = f"version IN ({_VERSIONS} AND state = 'current' AND ($2::text IS NULL OR id = $2))"
_OF_STORE = f"version IN ({_VERSIONS})"
_KNOWN = """SELECT version, state, coalesce((SELECT key FROM crag.part WHERE part.version = document.version
    ORDER BY number LIMIT 1), '') FROM crag.document WHERE store = $1 AND id = $2 AND content_hash = $3"""
_WANT_ENRICHMENT = f"""UPDATE crag.part SET enrichment = 'pending'
    WHERE {_OF_STORE} AND version = $2 AND enrichment = 'none'"""
_CLAIM = f"""{insert("origin", OriginRow._fields)}
    ON CONFLICT (store, document_id) DO UPDATE SET source = excluded.source"""
_RENAME = """UPDATE crag.document SET title = CASE WHEN title = name THEN $3 ELSE title END, name = $3
    WHERE store = $1 AND id = $2 AND state <> 'gone' AND name <> $3"""
_DESCRIBE = """UPDATE crag.document SET title = $3, metadata = $4, track = $5, updated_at = $6
    WHERE store = $1 AND id = $2 AND state = 'current'"""
_CLEAR_PASSAGES = "UPDATE crag.passage SET section = '', tier2 = NULL, text = NULL WHERE store = $1 AND version = $2"
_CLEAR_PARTS = f"""UPDATE crag.part SET embedded = false, enrichment = 'none', error = '', tier3 = NULL,
    enriched_at = NULL WHERE {_OF_STORE} AND version = $2"""
_CLEAR = """UPDATE crag.document SET state = 'gone', text = '', title = '', tier1 = '{}', metadata = '{}',
    marks = '[]' WHERE store = $1 AND version = $2"""
_FORGET_VECTORS = "DELETE FROM crag.embedding WHERE store = $1 AND document_id = $2"
_ADD_PART = """INSERT INTO crag.part SELECT $2, $3, $4, $5, $6, false, $7, '', NULL, NULL
    WHERE $1::bigint IS NOT NULL ON CONFLICT DO NOTHING"""
_SWEPT = """DELETE FROM crag.document WHERE store = $1 AND state = 'gone'
    AND NOT EXISTS (SELECT 1 FROM crag.part WHERE part.version = document.version)"""


class DocumentWrites(PassageReads):
    """Writes documents and their versions. Each write checks the leases of its writer in its own transaction."""

    _leases: tuple[Lease, ...] = ()

    def with_leases(self, *leases: Lease) -> Self:
        """Return this ledger for a holder of leases: its writes raise `LeaseLost` once another has taken one.

        A write checks the leases in its own transaction. Leases that have expired but were not taken are good.
        """
        other = copy(self)
        other._leases = (*self._leases, *leases)
        return other

    @asynccontextmanager
    async def _transaction(self, *, keep: bool = False) -> AsyncIterator[Changed]:
        """Write everything in the block or nothing, and nothing once a lease is lost."""
        changed = Changed()
        async with self.driver.transaction():
            await self.driver.check_leases(self._leases)
            yield changed
            await self.driver.show(changed)
        if keep:
            await self.driver.keep()

    async def enter(self, entry: Entry) -> None:
        """Make a text the current version of its document, and give the document the source and name of the text.

        The version that was current stays searchable until the new one is. If an earlier version of this text still
        exists, its passages are reused. Otherwise the text is indexed again. `Driver.keep` has to follow.
        """
        if damage := self.driver.reported_damage:
            raise LedgerDamaged(damage, "is damaged")
        async with self._transaction() as changed:
            changed.document = entry.identifier
            version = await self._make_current(entry)
            if entry.enrich:
                await self.driver.execute(_WANT_ENRICHMENT, version)
            await self._claim(entry.identifier, entry.source.source, entry.source.name)

    async def retire(self, document_id: str) -> bool:
        """Forget a document: no version of its text is kept, and its source is free. False when there is none.

        Its keys remain, by which its share of the graph is found.
        """
        async with self._transaction(keep=True) as changed:
            if await self.record(document_id) is None:
                return False
            changed.removed = document_id
            await self._retire("state <> 'gone'", document_id)
            await self.driver.execute("DELETE FROM crag.origin WHERE store = $1 AND document_id = $2", document_id)
            return True

    async def claim(self, document_id: str, source: str, name: str) -> None:
        """Give a document a source and a name. A title equal to the old name changes too.

        All of its versions get them: one of them may become the current one again.
        """
        async with self._transaction(keep=True) as changed:
            changed.document = document_id
            await self._claim(document_id, source, name)

    async def describe(self, document_id: str, source: SourceText, track: str) -> None:
        """Give a current document the source, the name, the title and the metadata of a text, and the track.

        If its passages are searched with another title then, its parts wait to be embedded again. They are found by
        the earlier one until then.
        """
        async with self._transaction(keep=True) as changed:
            changed.document = document_id
            for (version,) in await self.driver.all(f"{_VERSIONS} AND id = $2 AND state = 'current'", document_id):
                await self._embed_again_if_retitled(version, source)
            await self._claim(document_id, source.source, source.name)
            facts = (title_of(source), json_of(source.metadata), track, datetime.now(UTC).isoformat())
            await self.driver.execute(_DESCRIBE, document_id, *facts)

    async def want_enrichment(self, document_id: str) -> None:
        """Have a current document enriched that was accepted without."""
        async with self._transaction(keep=True) as changed:
            changed.status_of_document = document_id
            version = await self.driver.value(
                "UPDATE crag.document SET enrich = true"
                " WHERE store = $1 AND id = $2 AND state = 'current' RETURNING version",
                document_id,
            )
            if version is not None:
                await self.driver.execute(_WANT_ENRICHMENT, version)

    async def requeue(self, document_id: str | None, *, force: bool) -> None:
        """Have what failed or is under way wait again; with `force` everything. None stands for all documents."""
        changes = [
            f"part SET error = '' WHERE {_CHOSEN}",
            f"part SET enrichment = 'pending' WHERE {_CHOSEN} AND enrichment IN ('failed', 'processing')",
        ]
        if force:
            changes += [
                f"part SET embedded = false, enrichment = 'pending' WHERE {_CHOSEN}",
                "document SET enrich = true WHERE store = $1 AND state = 'current' AND ($2::text IS NULL OR id = $2)",
            ]
        async with self._transaction(keep=True) as changed:
            changed.status_of_document, changed.status_of_all = document_id, document_id is None
            for change in changes:
                await self.driver.execute(f"UPDATE crag.{change}", document_id)

    async def drop_swept(self) -> None:
        """Remove versions that are gone and of which the graph has nothing any more. The ledger is untidy then."""
        async with self._transaction():
            await self.driver.execute(_SWEPT)
            await self.driver.mark_untidy()

    async def _make_current(self, entry: Entry) -> int:
        created_at = await self.driver.value(
            "SELECT min(created_at) FROM crag.document WHERE store = $1 AND id = $2 AND state <> 'gone'",
            entry.identifier,
        )
        await self._put_aside(entry.identifier)
        known = await self.driver.one(_KNOWN, entry.identifier, entry.digest)
        if known is not None:
            version, state, key = known
            if state == "replaced":
                await self._update(version, entry, created_at)
                return int(version)
            if key == f"{entry.key}-0":
                await self._update(version, entry, created_at)
                await self._add_parts(version, entry)
                return int(version)
            # Its share of the graph is still to be taken out, by the passages that it had.
            aside = "content_hash = content_hash || '-' || version"
            await self.driver.execute(f"UPDATE crag.document SET {aside} WHERE store = $1 AND version = $2", version)
        version = await self._add(entry, created_at)
        await self._add_parts(version, entry)
        return version

    async def _put_aside(self, identifier: str) -> None:
        """Keep the current version until the new one is complete. Forget it now if it never was complete itself."""
        current = await self.record(identifier)
        if current is None:
            return
        if current.searchable and current.parts:
            await self.driver.execute(
                "UPDATE crag.document SET state = 'replaced' WHERE store = $1 AND id = $2 AND state = 'current'",
                identifier,
            )
            await self.driver.execute(_FORGET_VECTORS, identifier)
        else:
            await self._retire("state = 'current'", identifier)

    async def _retire(self, which: str, document_id: str) -> None:
        """Make versions `gone`: nothing of their text is kept but the keys by which their share of the graph is
        found."""
        chosen = f"SELECT version, state FROM crag.document WHERE store = $1 AND id = $2 AND {which}"
        for version, state in await self.driver.all(chosen, document_id):
            rows = await self.driver.all("SELECT id FROM crag.passage WHERE store = $1 AND version = $2", version)
            await self.driver.erase_texts([row[0] for row in rows])
            for clear in (_CLEAR_PASSAGES, _CLEAR_PARTS, _CLEAR):
                await self.driver.execute(clear, version)
            if state == "current":
                await self.driver.execute(_FORGET_VECTORS, document_id)

    async def _claim(self, document_id: str, source: str, name: str) -> None:
        await self.driver.execute(_CLAIM, document_id, source)
        await self.driver.execute(_RENAME, document_id, name)

    async def _add(self, entry: Entry, created_at: str | None) -> int:
        facts = columns_of(entry, created_at)
        marks = ", ".join(f"${number}" for number in range(4, len(facts) + 4))
        return int(
            await self.driver.value(
                f"INSERT INTO crag.document (store, id, content_hash, {', '.join(facts)})"
                f" VALUES ($1, $2, $3, {marks}) RETURNING version",
                entry.identifier,
                entry.digest,
                *facts.values(),
            )
        )

    async def _update(self, version: int, entry: Entry, created_at: str | None) -> None:
        """Make a version that is there the current one, with what was said of it this time."""
        await self._embed_again_if_retitled(version, entry.source)
        facts = columns_of(entry, created_at)
        changes = ", ".join(f"{name} = ${number}" for number, name in enumerate(facts, start=3))
        await self.driver.execute(
            f"UPDATE crag.document SET {changes} WHERE store = $1 AND version = $2", version, *facts.values()
        )

    async def _embed_again_if_retitled(self, version: int, source: SourceText) -> None:
        title, name = await self.driver.one(
            "SELECT title, name FROM crag.document WHERE store = $1 AND version = $2", version
        )
        if searched_title(title, name) != searched_title(title_of(source), source.name):
            await self.driver.execute(
                f"UPDATE crag.part SET embedded = false WHERE {_OF_STORE} AND version = $2", version
            )

    async def _add_parts(self, version: int, entry: Entry) -> None:
        """Enter a version's parts and their passages; those that are there are the same and stay."""
        enrichment = "pending" if entry.enrich else "none"
        parts = list(parts_of(entry))
        rows = [(version, part.number, part.key, part.first, part.last, enrichment) for part in parts]
        await self.driver.many(_ADD_PART, rows)
        await self.driver.add_passages(version, parts)
