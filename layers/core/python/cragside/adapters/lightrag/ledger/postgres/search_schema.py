"""What searches of passages read: words, vectors, and the counts that BM25 needs.

Many workspaces share the tables. A word is stored as `NUMBER:word` with its store's number ahead, so that the index of
words leads to the passages of one store alone. Triggers keep the counts right, whoever writes.
"""

# Rows hold a vector and the words of a passage. Searches read both, so that they stay in the row up to 8 KB.
TABLES = """
CREATE TABLE crag.searched (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, store bigint NOT NULL, id text COLLATE "C" NOT NULL,
    words tsvector NOT NULL, often jsonb NOT NULL, length integer NOT NULL, vector vector NOT NULL, UNIQUE (store, id),
    FOREIGN KEY (store, id) REFERENCES crag.passage (store, id) ON DELETE CASCADE) WITH (toast_tuple_target = 8160);
CREATE INDEX searched_by_word ON crag.searched USING gin (words) WITH (fastupdate = off);
CREATE TABLE crag.extent (
    store bigint PRIMARY KEY REFERENCES crag.store ON DELETE CASCADE,
    passages bigint NOT NULL, length bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE crag.word (
    store bigint NOT NULL REFERENCES crag.store ON DELETE CASCADE, word text COLLATE "C" NOT NULL,
    passages bigint NOT NULL, PRIMARY KEY (store, word)) WITH (fillfactor = 80);

CREATE FUNCTION crag.count_searched() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    -- When a whole store is deleted, its counts go with it.
    INSERT INTO crag.extent
        SELECT store, sign * count(*), sign * sum(length) FROM changed JOIN crag.store ON store.id = changed.store
        GROUP BY store ORDER BY store
        ON CONFLICT (store) DO UPDATE SET
            passages = extent.passages + excluded.passages, length = extent.length + excluded.length;
    -- In order, so that two transactions do not wait for each other.
    INSERT INTO crag.word
        SELECT store, substr(lexeme, strpos(lexeme, ':') + 1), sign * count(*)
        FROM changed JOIN crag.store ON store.id = changed.store CROSS JOIN LATERAL unnest(words)
        GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (store, word) DO UPDATE SET passages = word.passages + excluded.passages;
    IF sign < 0 THEN
        DELETE FROM crag.word WHERE passages = 0 AND (store, word) IN (
            SELECT store, substr(lexeme, strpos(lexeme, ':') + 1) FROM changed CROSS JOIN LATERAL unnest(words));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_written AFTER INSERT ON crag.searched REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION crag.count_searched();
CREATE TRIGGER count_deleted AFTER DELETE ON crag.searched REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION crag.count_searched();
"""

# The nearest of the rows that `condition` chooses: exactly, or by an index of their own where it is there. Names and
# conditions are text of ours. An index finds candidates by vectors of half precision; their cosines are exact all the
# same. A vector of zeros has the cosine 0. Without a limit all rows are compared, because an index stops early.
# Without OFFSET 0, a cosine would be computed where it is compared, where it is shown and where it is sorted by.
TABLES += """
CREATE FUNCTION crag.nearest(
    source text, seq text, vectors text, condition text, by_index text,
    question float4[], threshold float8, most integer)
    RETURNS TABLE (found_seq bigint, found text, cosine float8) LANGUAGE plpgsql STABLE ROWS 30 AS $$
DECLARE
    rows text := format('%s WHERE %s', source, condition);
BEGIN
    IF most IS NOT NULL AND EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(by_index) AND indisvalid) THEN
        PERFORM set_config('hnsw.iterative_scan', 'strict_order', true),
            set_config('hnsw.ef_search', least(1000, 40 + 6 * most)::text, true);
        rows := format('(SELECT * FROM %s ORDER BY %s::halfvec(%s) <=> $1::vector::halfvec LIMIT $3 + 10) AS near',
            rows, vectors, cardinality(question));
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT seq, id, cosine FROM (
            SELECT %s AS seq, id::text, coalesce(nullif(1 - (%s <=> $1::vector), ''NaN''), 0) AS cosine
            FROM %s OFFSET 0) AS compared
        WHERE cosine >= $2 ORDER BY cosine DESC, seq, id LIMIT $3', seq, vectors, rows)
        USING question, threshold, most;
END $$;
"""
