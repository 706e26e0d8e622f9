-- PostgreSQL only. Commits a batch in one round trip: all rows of its arrays, if the database is at
-- this epoch and batch. Otherwise fails with the error code WW001.
CREATE FUNCTION ww_commit(
    at_epoch BIGINT,
    after_batch BIGINT,
    gone_accounts BYTEA[],
    gone_characters BIGINT[],
    gone_nodes BIGINT[],
    gone_parents BIGINT[],
    gone_children BIGINT[],
    gone_scores BIGINT[],
    setting_names TEXT[],
    setting_values BYTEA[],
    account_ids BYTEA[],
    account_names TEXT[],
    account_folded TEXT[],
    account_flags BIGINT[],
    account_created BIGINT[],
    account_secrets BYTEA[],
    character_ids BIGINT[],
    character_accounts BYTEA[],
    character_names TEXT[],
    character_created BIGINT[],
    character_data BYTEA[],
    node_ids BIGINT[],
    node_kinds BIGINT[],
    node_data BYTEA[],
    ref_parents BIGINT[],
    ref_children BIGINT[],
    ref_owners BIGINT[],
    score_ids BIGINT[],
    score_owners BIGINT[],
    score_names TEXT[],
    score_kinds BIGINT[],
    score_values BIGINT[],
    score_created BIGINT[]
) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    -- The fence: another writer's claim changed the epoch in this very row.
    UPDATE shard SET last_batch = last_batch + 1 WHERE epoch = at_epoch AND last_batch = after_batch;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the database is no longer at epoch %, batch %', at_epoch, after_batch
            USING ERRCODE = 'WW001';
    END IF;

    -- Deletions first, because a new row may reuse the unique name of a deleted one.
    IF cardinality(gone_accounts) > 0 THEN
        DELETE FROM accounts WHERE id = ANY (gone_accounts);
    END IF;
    IF cardinality(gone_characters) > 0 THEN
        DELETE FROM characters WHERE id = ANY (gone_characters);
    END IF;
    IF cardinality(gone_nodes) > 0 THEN
        DELETE FROM nodes WHERE id = ANY (gone_nodes);
    END IF;
    IF cardinality(gone_parents) > 0 THEN
        DELETE FROM refs USING unnest(gone_parents, gone_children) AS gone (parent, child)
            WHERE refs.parent = gone.parent AND refs.child = gone.child;
    END IF;
    IF cardinality(gone_scores) > 0 THEN
        DELETE FROM scores WHERE id = ANY (gone_scores);
    END IF;

    IF cardinality(setting_names) > 0 THEN
        INSERT INTO settings (name, value) SELECT * FROM unnest(setting_names, setting_values)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    END IF;
    IF cardinality(account_ids) > 0 THEN
        INSERT INTO accounts (id, name, folded, flags, created, secret)
            SELECT * FROM unnest(account_ids, account_names, account_folded, account_flags,
                account_created, account_secrets)
            ON CONFLICT (id) DO UPDATE SET name = excluded.name, folded = excluded.folded,
                flags = excluded.flags, created = excluded.created, secret = excluded.secret;
    END IF;
    IF cardinality(character_ids) > 0 THEN
        INSERT INTO characters (id, account, name, created, data)
            SELECT * FROM unnest(character_ids, character_accounts, character_names,
                character_created, character_data)
            ON CONFLICT (id) DO UPDATE SET account = excluded.account, name = excluded.name,
                created = excluded.created, data = excluded.data;
    END IF;
    IF cardinality(node_ids) > 0 THEN
        INSERT INTO nodes (id, kind, data) SELECT * FROM unnest(node_ids, node_kinds, node_data)
            ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, data = excluded.data;
    END IF;
    IF cardinality(ref_parents) > 0 THEN
        INSERT INTO refs (parent, child, owner)
            SELECT * FROM unnest(ref_parents, ref_children, ref_owners)
            ON CONFLICT (parent, child) DO UPDATE SET owner = excluded.owner;
    END IF;
    IF cardinality(score_ids) > 0 THEN
        INSERT INTO scores (id, owner, name, kind, value, created)
            SELECT * FROM unnest(score_ids, score_owners, score_names, score_kinds, score_values,
                score_created)
            ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, name = excluded.name,
                kind = excluded.kind, value = excluded.value, created = excluded.created;
    END IF;
END;
$$;
