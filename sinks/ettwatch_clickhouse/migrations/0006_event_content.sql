-- One event told in two spellings is one row: what is hashed is its content. The writer sends the content as canonical
-- JSON where the text differs from it; that column is not stored. Rows that were told canonically keep their hash.
ALTER TABLE events_log
    ADD COLUMN IF NOT EXISTS canonical String EPHEMERAL '' COMMENT 'given with an insert, never stored: the content as compact JSON where raw is spelt otherwise',
    MODIFY COLUMN uid UInt64 MATERIALIZED sipHash64(id, if(canonical = '', raw, canonical)) COMMENT 'hash of id and content: equal for two copies of one event, however they are spelt';
