"""The parts and passages of a ledger, and what is still to be done of them."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from collections.abc import Sequence
from typing import Any

from cragside.domain.dating import BEGINNING
from cragside.domain.indexing import DocumentRecord, EnrichmentStatus, Passage, Progress, Task
from cragside.store.chunking import StoredPart, parsed, searched_title, sections_in
from cragside.store.documents import DOCUMENT, FAILED, FIELDS, DocumentReads

_PARTS = "crag.part JOIN crag.document USING (version) WHERE document.store = $1"
# As `Progress` has it: first what each document's parts say together, then all of them.
_PROGRESS = f"""SELECT count(*) FILTER (WHERE NOT failed AND NOT begun),
    count(*) FILTER (WHERE NOT failed AND begun AND NOT done), count(*) FILTER (WHERE NOT failed AND done),
    count(*) FILTER (WHERE failed), coalesce(sum(tasks), 0)::bigint, coalesce(sum(processing), 0)::bigint,
    coalesce(sum(given_up), 0)::bigint FROM (
        SELECT bool_or(embedded) AS begun,
            bool_and(embedded) AND (bool_and(enrichment = 'enriched') OR bool_and(enrichment = 'none')) AS done,
            {FAILED} AS failed,
            count(*) FILTER (WHERE error = '' AND NOT embedded)
                + count(*) FILTER (WHERE error = '' AND enrichment IN ('pending', 'processing')) AS tasks,
            count(*) FILTER (WHERE error = '' AND enrichment = 'processing') AS processing,
            count(*) FILTER (WHERE error <> '') AS given_up
        FROM {_PARTS} AND state = 'current' GROUP BY version) AS told"""
_FIELDS = (
    "passage.id, passage.part, passage.number, passage.page, passage.section, passage.tier2, part.enrichment,"
    " passage.text, passage.version, document.id AS document_id"
)
PASSAGE = f"""SELECT {_FIELDS} FROM crag.passage
    JOIN crag.document ON document.version = passage.version
    JOIN crag.part ON part.version = passage.version AND part.number = passage.part WHERE passage.store = $1"""
FOUND = f"{PASSAGE} AND passage.id = ANY($2)"
BEGINNING_OF_TEXT = f"""(SELECT left(opening.text, {BEGINNING}) FROM crag.passage AS opening
    WHERE opening.version = document.version AND opening.number = 0)"""
OWNERS = f"""SELECT {FIELDS}, {BEGINNING_OF_TEXT} FROM {DOCUMENT}
    WHERE document.store = $1 AND state <> 'gone' AND document.version = ANY($2)"""
_PART = "version, number, key, first, last, embedded, enrichment, title, name"
_TASKS = f"""SELECT document.id, content_hash, number, embedded, enrichment,
    last = (SELECT max(last) FROM crag.part AS other WHERE other.version = part.version) AND EXISTS
    (SELECT 1 FROM crag.document AS older
        WHERE older.store = $1 AND older.id = document.id AND older.state <> 'current')
    FROM {_PARTS} AND state = 'current' AND ($2::text IS NULL OR document.id = $2) ORDER BY version, number"""
_SWEEPS = """SELECT id, content_hash, coalesce(min(number), 0) FROM crag.document
    LEFT JOIN crag.part USING (version) WHERE store = $1 AND state = 'gone' AND ($2::text IS NULL OR id = $2)
    GROUP BY version ORDER BY version"""
_CHUNK_IDS = """SELECT id FROM crag.passage WHERE store = $1 AND version = $2 AND number BETWEEN $3 AND $4
    ORDER BY number"""
_ENTITIES = "kind = 'entity' AND md5(name) = ANY(SELECT md5(each) FROM unnest($2::text[]) AS each) AND name = ANY($2)"
_DOCUMENTS_MENTIONING = """SELECT document.id, document.name, min(document.created_at) FROM crag.mention
    JOIN crag.passage ON passage.store = mention.store AND passage.id = mention.passage
    JOIN crag.document ON document.version = passage.version
    WHERE mention.store = $1 AND kind = 'entity' AND md5(mention.name) = md5($2) AND mention.name = $2
    AND document.state <> 'gone' GROUP BY document.id, document.name
    ORDER BY min(document.created_at), document.name LIMIT $3"""
_PASSAGES_MENTIONING = """SELECT passage.id, count(*) OVER () FROM crag.mention
    JOIN crag.passage ON passage.store = mention.store AND passage.id = mention.passage
    JOIN crag.document ON document.version = passage.version
    WHERE mention.store = $1 AND kind = $2 AND md5(mention.name) = md5($3) AND mention.name = $3
    AND document.state <> 'gone' ORDER BY document.created_at, document.version, passage.number LIMIT $4"""
_NAMED_BY_REMOVED = """WITH gone AS MATERIALIZED (SELECT passage.id FROM crag.document JOIN crag.passage USING (version)
        WHERE document.store = $1 AND state = 'gone'),
    named AS (SELECT DISTINCT name FROM gone JOIN crag.mention ON mention.store = $1 AND mention.passage = gone.id
        AND mention.kind = $2 WHERE name = ANY($3))
    SELECT name, EXISTS (SELECT 1 FROM crag.mention AS other WHERE other.store = $1 AND other.kind = $2
        AND md5(other.name) = md5(named.name) AND other.name = named.name
        AND NOT EXISTS (SELECT 1 FROM gone WHERE gone.id = other.passage)) FROM named"""


class PassageReads(DocumentReads):
    """Reads parts, their passages and their tasks."""

    async def passages(self, document_id: str, part: int | None) -> list[Passage]:
        """List the passages of a current document in their order."""
        rows = await self.driver.all(
            f"{PASSAGE} AND document.id = $2 AND document.state = 'current'"
            " AND ($3::integer IS NULL OR passage.part = $3) ORDER BY passage.number",
            document_id,
            part,
        )
        return [passage_of(row) for row in rows]

    async def passages_by_id(self, ids: Sequence[str]) -> dict[str, tuple[DocumentRecord, Passage]]:
        """Return passages of any version with their documents."""
        found, owners, parts, shared = await self.driver.passages_with_documents(list(dict.fromkeys(ids)))
        records = {row[0]: record for row, record in await self._joined(owners, parts, shared)}
        return {row[0]: (records[row[8]], passage_of(row)) for row in found if row[8] in records and row[7] is not None}

    async def counts(self) -> dict[EnrichmentStatus, int]:
        """Count the passages of current documents in each state of enrichment."""
        rows = await self.driver.all(
            f"SELECT enrichment, sum(last - first + 1)::bigint FROM {_PARTS} AND state = 'current' GROUP BY enrichment"
        )
        return {row[0]: row[1] for row in rows}

    async def progress(self) -> Progress:
        """Return the progress of current documents."""
        return Progress(*await self.driver.one(_PROGRESS))

    async def tasks(self, document_id: str | None = None) -> list[Task]:
        """Return the tasks of current documents that are left, embedding first."""
        rows = await self.driver.all(_TASKS, document_id)
        embed = [row for row in rows if not row[3] or row[5]]
        enrich = [row for row in rows if row[4] in ("pending", "processing")]
        return [self._task(row, "embed") for row in embed] + [self._task(row, "enrich") for row in enrich]

    async def sweeps(self, document_id: str | None = None) -> list[Task]:
        """Tasks that remove deleted versions from the graph."""
        return [self._task(row, "enrich") for row in await self.driver.all(_SWEEPS, document_id)]

    async def given_up(self) -> set[tuple[str, int]]:
        """Return the ids of documents and the numbers of their parts for the current parts that failed."""
        rows = await self.driver.all(f"SELECT document.id, number FROM {_PARTS} AND state = 'current' AND error <> ''")
        return {(row[0], row[1]) for row in rows}

    async def part(self, task: Task) -> StoredPart | None:
        """Return the part of a task, None when its version is not the current one."""
        row = await self.driver.one(
            f"SELECT {_PART} FROM {_PARTS} AND id = $2 AND content_hash = $3 AND state = 'current' AND number = $4",
            task.document_id,
            task.content_hash,
            task.part,
        )
        return None if row is None else _stored(row)

    async def chunk_ids(self, part: StoredPart) -> list[str]:
        """List the ids of a part's passages in their order."""
        return [row[0] for row in await self.driver.all(_CHUNK_IDS, part.version, part.first, part.last)]

    async def being_enriched(self) -> list[Task]:
        """Tasks of the parts that are marked as being enriched."""
        rows = await self.driver.all(
            f"SELECT id, content_hash, number FROM {_PARTS} AND state = 'current' AND enrichment = 'processing'"
        )
        return [self._task(row, "enrich") for row in rows]

    async def removed_parts(self) -> list[StoredPart]:
        """List the parts of all versions that are to be removed."""
        rows = await self.driver.all(f"SELECT {_PART} FROM {_PARTS} AND state = 'gone' ORDER BY version, number")
        return [_stored(row) for row in rows]

    async def mentions(self, names: Sequence[str]) -> dict[str, int]:
        """Count the passages that mention each of these entities. Entities without one are left out."""
        rows = await self.driver.all(
            f"SELECT name, count(*) FROM crag.mention WHERE store = $1 AND {_ENTITIES} GROUP BY name",
            list(names),
        )
        return {row[0]: row[1] for row in rows}

    async def mentioned_by(self, passage_ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return the entities that passages mention: pairs of a passage's id and a name."""
        rows = await self.driver.all(
            "SELECT passage, name FROM crag.mention WHERE store = $1 AND passage = ANY($2) AND kind = 'entity'",
            list(passage_ids),
        )
        return [(row[0], row[1]) for row in rows]

    async def named_by_removed(self, kind: str, names: Sequence[str]) -> dict[str, bool]:
        """Return the entities or relations that removed passages mention, while the graph still has their share.

        The value says whether a passage that is still there names it too.
        """
        rows = await self.driver.all(_NAMED_BY_REMOVED, kind, list(names))
        return {name: bool(stays) for name, stays in rows}

    async def passages_mentioning(self, kind: str, name: str, limit: int) -> tuple[list[str], int]:
        """Ids of the passages that name an entity or a relation, the earliest documents first, and how many there are.

        Those of removed documents do not count.
        """
        rows = await self.driver.all(_PASSAGES_MENTIONING, kind, name, limit)
        return [row[0] for row in rows], rows[0][1] if rows else 0

    async def documents_mentioning(self, name: str, limit: int) -> list[tuple[str, str, str]]:
        """Ids, names and times of acceptance of the documents that mention an entity, earliest first, then by name."""
        return [(row[0], row[1], row[2]) for row in await self.driver.all(_DOCUMENTS_MENTIONING, name, limit)]

    def _task(self, row: Sequence[Any], stage: Any) -> Task:
        return Task(self._workspace, row[0], row[1], row[2], stage)


def _stored(row: Sequence[Any]) -> StoredPart:
    version, number, key, first, last, embedded, enrichment, title, name = row
    return StoredPart(version, number, key, first, last, bool(embedded), enrichment, searched_title(title, name))


def passage_of(row: Sequence[Any]) -> Passage:
    """Make the passage of a row of `PASSAGE`."""
    identifier, part, number, page, places, tier2, enrichment, text, _, document_id = row
    section, sections = sections_in(places)
    return Passage(
        id=identifier,
        document_id=document_id,
        part=part,
        index=number,
        text=text or "",
        page=page,
        section=section,
        sections=sections,
        enrichment=enrichment,
        tier2=None if tier2 is None else parsed(tier2),
    )
