-- Generated rows for the tables of an application: a value by the type of its column, keys of other tables by the
-- rows that these have. Row n of a table refers to row n of another, so that unique keys over references hold.

CREATE SCHEMA fill;

-- Of an array, range or domain: of its element.
CREATE FUNCTION fill.value(type oid, modifier integer, n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	t pg_type;
	word text := left(md5(random()::text), 6) || n;
BEGIN
	SELECT * INTO t FROM pg_type WHERE oid = type;
	IF t.typtype = 'e' THEN
		RETURN (SELECT enumlabel FROM pg_enum WHERE enumtypid = type ORDER BY random() LIMIT 1);
	ELSIF t.typtype = 'd' THEN
		RETURN fill.value(t.typbasetype, t.typtypmod, n);
	ELSIF t.typtype = 'r' THEN
		RETURN (SELECT format('[%s,)', fill.value(rngsubtype, -1, n)) FROM pg_range WHERE rngtypid = type);
	ELSIF t.typtype = 'm' THEN
		RETURN '{}';
	ELSIF t.typcategory = 'A' THEN
		RETURN ARRAY[fill.value(t.typelem, modifier, n)];
	END IF;
	RETURN CASE
		WHEN t.typname = 'bool' THEN (random() < 0.5)::text
		WHEN t.typname = 'int2' THEN (n % 30000)::text
		WHEN t.typname = 'numeric' AND modifier > 0 THEN
			trunc(mod(n, 10.0 ^ least(9, ((modifier - 4) >> 16) - ((modifier - 4) & 2047))))::text
		WHEN t.typname IN ('int4', 'int8', 'oid', 'numeric', 'float4', 'float8', 'money') THEN n::text
		WHEN t.typname IN ('text', 'varchar', 'bpchar', 'citext', 'name') THEN
			right(word, CASE WHEN modifier > 4 THEN modifier - 4 ELSE 60 END)
		WHEN t.typname IN ('tsvector', 'tsquery', 'ltree') THEN 'w' || word
		WHEN t.typname = 'uuid' THEN md5(random()::text)
		WHEN t.typname IN ('date', 'timestamp', 'timestamptz') THEN
			(timestamp '2024-01-01' + n % 1000 * interval '25 hours 1 second')::text
		WHEN t.typname IN ('time', 'timetz') THEN (time '00:00' + n * interval '61 seconds')::text
		WHEN t.typname = 'interval' THEN n || ' minutes'
		WHEN t.typname IN ('json', 'jsonb') THEN format('{"n": %s, "word": "%s"}', n, word)
		WHEN t.typname = 'hstore' THEN 'n=>' || n
		WHEN t.typname = 'bytea' THEN '\x' || md5(random()::text)
		WHEN t.typname IN ('inet', 'cidr') THEN host(inet '10.0.0.0' + n)
		WHEN t.typname = 'macaddr' THEN '08:00:2b' || to_char(n % 1000000, 'FM000000')
		WHEN t.typname IN ('bit', 'varbit') THEN repeat('1', greatest(modifier, 1))
		WHEN t.typname = 'xml' THEN format('<n>%s</n>', n)
		WHEN t.typname = 'point' THEN format('(%s,1)', n)
	END;
END $$;

-- One of the words that a CHECK of this column alone allows, or NULL.
CREATE FUNCTION fill.allowed(tbl regclass, number smallint) RETURNS text LANGUAGE sql AS $$
	SELECT replace(word[1], '''''', '''')
	FROM pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''((?:[^'']|'''')*)''::', 'g') AS word
	WHERE conrelid = tbl AND contype = 'c' AND conkey = ARRAY[number]
	ORDER BY random() LIMIT 1
$$;

-- The columns that row n of other tables gives, by the numbers of the columns.
CREATE FUNCTION fill.referred(tbl regclass, n integer) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	key record;
	found jsonb;
	columns jsonb := '{}';
BEGIN
	FOR key IN
		SELECT confrelid::regclass AS other, string_agg(format('%s, r.%I::text', number, attname), ', ') AS pairs,
			jsonb_object_agg(number, NULL) AS none
		FROM pg_constraint, unnest(conkey, confkey) AS k (number, other_number)
		JOIN pg_attribute ON attnum = other_number
		WHERE conrelid = tbl AND contype = 'f' AND attrelid = confrelid
		GROUP BY pg_constraint.oid, confrelid ORDER BY cardinality(conkey)
	LOOP
		EXECUTE format('SELECT jsonb_build_object(%s) FROM %s AS r
			OFFSET $1 %% greatest((SELECT count(*) FROM %2$s), 1) LIMIT 1', key.pairs, key.other) INTO found USING n - 1;
		columns := columns || coalesce(found, key.none);
	END LOOP;
	RETURN columns;
END $$;

-- The columns of the primary key.
CREATE FUNCTION fill.key(tbl regclass) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(quote_ident(attname), ', ')
	FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
	WHERE indrelid = tbl AND indisprimary
$$;

-- Inserts row n, and returns its primary key as text. Without optional columns if has_all is false.
CREATE FUNCTION fill.insert_row(tbl regclass, n integer, has_all boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	referred jsonb := fill.referred(tbl, n);
	names text;
	literals text;
	result text;
BEGIN
	SELECT string_agg(quote_ident(attname), ', '), string_agg(format('%L', CASE
			WHEN referred ? attnum::text THEN referred ->> attnum::text
			ELSE coalesce(fill.allowed(tbl, attnum), fill.value(atttypid, atttypmod, n)) END), ', ')
	INTO names, literals
	FROM pg_attribute
	LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
	WHERE attrelid = tbl AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''
		AND (adbin IS NULL OR has_all AND pg_get_expr(adbin, adrelid) !~ '\(')
		AND (has_all OR attnotnull);
	EXECUTE format('INSERT INTO %s %s RETURNING ROW(%s)::text', tbl,
		coalesce('(' || names || ') VALUES (' || literals || ')', 'DEFAULT VALUES'), fill.key(tbl)) INTO result;
	RETURN result;
END $$;

CREATE FUNCTION fill.row(tbl regclass, n integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN fill.insert_row(tbl, n, true);
EXCEPTION WHEN integrity_constraint_violation OR data_exception OR raise_exception THEN
	RETURN fill.insert_row(tbl, n, false);
END $$;

-- The tables of a schema, each after those to which it refers. In a circle, a key that can be NULL does not count.
CREATE FUNCTION fill.tables(name text) RETURNS SETOF regclass LANGUAGE plpgsql AS $$
DECLARE
	todo oid[] := ARRAY(SELECT oid FROM pg_class WHERE relnamespace = name::regnamespace AND relkind IN ('r', 'p')
		AND NOT relispartition ORDER BY relname);
	next oid;
BEGIN
	WHILE todo <> '{}' LOOP
		SELECT t INTO next FROM unnest(todo) AS t
		LEFT JOIN pg_constraint ON conrelid = t AND contype = 'f' AND confrelid <> t AND confrelid = ANY (todo)
		LEFT JOIN pg_attribute ON attrelid = t AND attnum = ANY (conkey)
		GROUP BY t ORDER BY count(*) FILTER (WHERE attnotnull), count(conrelid), t LIMIT 1;
		RETURN NEXT next::regclass;
		todo := array_remove(todo, next);
	END LOOP;
END $$;

-- Up to n rows for each table; the first error of those that were refused.
CREATE FUNCTION fill.all(name text, n integer) RETURNS TABLE (tbl regclass, inserted bigint, error text)
LANGUAGE plpgsql AS $$
BEGIN
	FOR tbl IN SELECT fill.tables(name) LOOP
		inserted := 0;
		error := NULL;
		FOR i IN 1..n LOOP
			BEGIN
				PERFORM fill.row(tbl, i);
				inserted := inserted + 1;
			EXCEPTION WHEN OTHERS THEN
				error := coalesce(error, SQLERRM);
			END;
		END LOOP;
		RETURN NEXT;
	END LOOP;
END $$;

CREATE FUNCTION fill.counts(name text) RETURNS TABLE (tbl regclass, rows bigint) LANGUAGE plpgsql AS $$
BEGIN
	FOR tbl IN SELECT fill.tables(name) ORDER BY 1 LOOP
		EXECUTE format('SELECT count(*) FROM %s', tbl) INTO rows;
		RETURN NEXT;
	END LOOP;
END $$;

-- How many of these keys, of fill.row(), the table lacks.
CREATE FUNCTION fill.lacks(tbl regclass, keys text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	lacking bigint := 0;
BEGIN
	IF fill.key(tbl) IS NOT NULL THEN
		EXECUTE format('SELECT count(*) FROM unnest($1) AS key WHERE key NOT IN (SELECT ROW(%s)::text FROM %s)',
			fill.key(tbl), tbl) INTO lacking USING keys;
	END IF;
	RETURN lacking;
END $$;

-- Writes a new version of a row.
CREATE FUNCTION fill.change(tbl regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	name text := (SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = tbl AND attnum > 0 AND NOT attisdropped
		AND attgenerated = '' AND attidentity <> 'a' ORDER BY attnum DESC LIMIT 1);
BEGIN
	EXECUTE format('UPDATE %s SET %s = %2$s WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM %1$s LIMIT 1)',
		tbl, name);
END $$;
