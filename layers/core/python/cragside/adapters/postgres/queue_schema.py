"""The tables of the queue, and the function that hands tasks out.

The function is in the database so that a worker that is stopped in the middle of a call keeps nobody waiting.
"""

# ruff: noqa: S608 - statements are put together from names in this module

# What PostgreSQL's advisory locks are known by: any number that no other program is likely to take.
_CHOOSING = 0x6372_6168
# A task that this many workers died with is handed out alone. From then on, each death counts as an attempt.
DEATHS_TOLERATED = 3

TASK = "workspace, document_id, content_hash, part, stage"

# `lease` is the end of the lease, NULL for a waiting task. `deaths` counts the workers that died with the task.
# `queue_turn` has the order of the workspaces' last turns.
TABLES = f"""
CREATE TABLE crag.task (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text COLLATE "C" NOT NULL, grp text COLLATE "C" NOT NULL,
    workspace text COLLATE "C" NOT NULL, document_id text NOT NULL, content_hash text NOT NULL, part integer NOT NULL,
    stage text NOT NULL, attempts integer NOT NULL DEFAULT 0, deaths integer NOT NULL DEFAULT 0,
    due timestamptz NOT NULL DEFAULT clock_timestamp(), lease timestamptz, token uuid, holder text);
CREATE INDEX task_by_key ON crag.task (key);
CREATE INDEX task_by_document ON crag.task (workspace, document_id, stage);
CREATE INDEX task_by_turn ON crag.task (workspace, stage, id) WHERE lease IS NULL;
CREATE INDEX task_in_hand ON crag.task (lease) WHERE lease IS NOT NULL;
CREATE INDEX task_suspect ON crag.task (due) WHERE deaths > 0;
CREATE TABLE crag.dead_task (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text COLLATE "C" NOT NULL UNIQUE,
    workspace text COLLATE "C" NOT NULL, document_id text NOT NULL, content_hash text NOT NULL, part integer NOT NULL,
    stage text NOT NULL, reason text NOT NULL, attempts integer NOT NULL, at text NOT NULL);
CREATE INDEX dead_task_by_document ON crag.dead_task (workspace, document_id);
CREATE TABLE crag.queue_turn (workspace text COLLATE "C" PRIMARY KEY, number bigint NOT NULL);
CREATE SEQUENCE crag.queue_turn_number;

-- At most `most` waiting tasks of a stage, in turns: the workspace with the fewest tasks in hand is next, then the one
-- whose last turn was longest ago. `besides` count as in hand. `before` is how many tasks the workspace had in hand.
CREATE FUNCTION crag.tasks_in_turn(wanted text, most integer, besides bigint[])
RETURNS TABLE (task_id bigint, before bigint) LANGUAGE sql AS $$
    WITH RECURSIVE waiting AS (
        (SELECT workspace FROM crag.task WHERE lease IS NULL ORDER BY workspace LIMIT 1)
        UNION ALL
        SELECT (SELECT task.workspace FROM crag.task WHERE lease IS NULL AND task.workspace > waiting.workspace
            ORDER BY task.workspace LIMIT 1)
        FROM waiting WHERE waiting.workspace IS NOT NULL),
    in_hand AS (SELECT workspace, grp FROM crag.task WHERE lease IS NOT NULL OR id = ANY(besides)),
    turns AS (
        SELECT workspace, coalesce(number, 0) AS number,
            (SELECT count(*) FROM in_hand WHERE in_hand.workspace = waiting.workspace)
                + coalesce(number = (SELECT max(number) FROM crag.queue_turn), false)::integer AS taken
        FROM waiting LEFT JOIN crag.queue_turn USING (workspace) WHERE workspace IS NOT NULL)
    SELECT ready.id, turns.taken + ready.nth - 1 AS before
    FROM turns CROSS JOIN LATERAL (
        SELECT id, row_number() OVER (ORDER BY id) AS nth FROM crag.task
        WHERE workspace = turns.workspace AND stage = wanted AND lease IS NULL AND due <= clock_timestamp()
        AND grp NOT IN (SELECT grp FROM in_hand)
        AND (wanted = 'embed' OR NOT EXISTS (SELECT 1 FROM crag.task AS other
            WHERE other.workspace = task.workspace AND other.document_id = task.document_id AND other.stage = 'embed'))
        ORDER BY id LIMIT most) AS ready
    ORDER BY before, turns.number, turns.workspace LIMIT greatest(most, 0)
$$;

-- Hand out at most `most` tasks: text before enrichment, but no workspace waits until all text of others is embedded,
-- and half of the free places stay free for text that arrives meanwhile. `dead` are holders that no longer live.
CREATE FUNCTION crag.take_tasks(most integer, seconds float8, worker text, dead text[])
RETURNS SETOF crag.task LANGUAGE plpgsql AS $$
DECLARE
    busy boolean;
    embedding bigint[];
    later integer;
    picked bigint[];
BEGIN
    -- One worker at a time chooses. The others ask again.
    IF NOT pg_try_advisory_xact_lock({_CHOOSING}) THEN
        RETURN;
    END IF;
    UPDATE crag.task SET lease = NULL, token = NULL, holder = NULL, attempts = attempts + 1
        WHERE lease <= clock_timestamp();
    -- A worker with many tasks in hand may die of any of them, or of none: none is blamed until it was alone.
    UPDATE crag.task SET lease = NULL, token = NULL, holder = NULL, deaths = deaths + 1,
        attempts = attempts + (deaths >= {DEATHS_TOLERATED})::integer,
        due = CASE WHEN deaths < {DEATHS_TOLERATED} THEN due
            ELSE clock_timestamp() + make_interval(secs => least(60, 1 << least(attempts, 6))) END
        WHERE lease IS NOT NULL AND holder = ANY(dead);
    IF EXISTS (SELECT 1 FROM crag.task
        WHERE lease IS NOT NULL AND holder = worker AND deaths >= {DEATHS_TOLERATED}) THEN
        RETURN;
    END IF;
    busy := EXISTS (SELECT 1 FROM crag.task WHERE lease IS NOT NULL AND holder = worker);
    picked := ARRAY(SELECT id FROM crag.task
        WHERE deaths >= {DEATHS_TOLERATED} AND deaths > 0 AND lease IS NULL AND due <= clock_timestamp()
        AND grp NOT IN (SELECT grp FROM crag.task WHERE lease IS NOT NULL) ORDER BY due LIMIT 1);
    IF cardinality(picked) > 0 AND busy THEN
        RETURN;
    END IF;
    IF cardinality(picked) = 0 THEN
        SELECT coalesce(array_agg(task_id), '{{}}'), count(*) FILTER (WHERE before > 0) INTO embedding, later
            FROM crag.tasks_in_turn('embed', most, '{{}}');
        IF cardinality(embedding) < most THEN
            picked := embedding || ARRAY(SELECT task_id FROM crag.tasks_in_turn('enrich', least(
                most - cardinality(embedding),
                greatest(most / 2, CASE WHEN busy OR cardinality(embedding) > 0 THEN 0 ELSE 1 END)), embedding));
        ELSE
            -- No workspace gets a second task before another one gets its first.
            picked := ARRAY(SELECT task_id FROM crag.tasks_in_turn('enrich', later, embedding) WHERE before = 0);
            picked := embedding[1:most - cardinality(picked)] || picked;
        END IF;
    END IF;
    UPDATE crag.task SET lease = clock_timestamp() + make_interval(secs => seconds), token = gen_random_uuid(),
        holder = worker WHERE id = ANY(picked);
    INSERT INTO crag.queue_turn
        SELECT workspace, max(nth) FROM (
            SELECT task.workspace, nextval('crag.queue_turn_number') AS nth
            FROM unnest(picked) WITH ORDINALITY AS each (id, place) JOIN crag.task USING (id)
            ORDER BY place) AS given
        GROUP BY workspace
        ON CONFLICT (workspace) DO UPDATE SET number = excluded.number;
    RETURN QUERY SELECT task.* FROM unnest(picked) WITH ORDINALITY AS each (id, place)
        JOIN crag.task USING (id) ORDER BY place;
END
$$;
"""
