-- A final attempt or phase counts before one that is not, whatever their versions: a worker that was set back by a crash
-- may call a row final under a lower version than the one that stands, and what is final has to stay. Version 0 is kept
-- out: such a row counts only where nobody wrote the attempt or phase before. Rows that are there keep their ver, by
-- which they count among each other as before, and after every final row that is written from now on.
ALTER TABLE attempts_log
    MODIFY COLUMN ver UInt128 MATERIALIZED bitShiftLeft(toUInt128(final AND version > 0), 127) + bitShiftLeft(toUInt128(version), 64) + written COMMENT 'final or not, then version, then written: of rows with one key the greatest counts';

ALTER TABLE phases_log
    MODIFY COLUMN ver UInt128 MATERIALIZED bitShiftLeft(toUInt128(final AND version > 0), 127) + bitShiftLeft(toUInt128(version), 64) + written CODEC(ZSTD(1)) COMMENT 'final or not, then version, then written: of rows with one key the greatest counts';
