-- The transactions that insta5.settled_id() waits for, the oldest first; gid is the name of a prepared one.
CREATE VIEW insta5.drawing AS
SELECT l.pid, p.gid, coalesce(a.usename, p.owner) AS role, clock_timestamp() - coalesce(a.xact_start, p.prepared) AS age,
       a.state, a.query
FROM pg_locks AS l
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
LEFT JOIN (pg_locks AS x JOIN pg_prepared_xacts AS p ON p.transaction = x.transactionid)
    ON l.pid IS NULL AND x.pid IS NULL AND x.virtualtransaction = l.virtualtransaction
WHERE l.locktype = 'relation' AND l.relation = 'insta5.table_id_seq'::regclass
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'ShareLock')
ORDER BY age DESC;
