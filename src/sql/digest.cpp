/* The SQL function that sums up the rows of a table, so that two servers can compare theirs. */
#include "pg.h"
#include "stored.h"
#include "sql/arguments.h"

using namespace snowflake;

namespace
{

/* A column's seed has its name and its type, or no type if the values are hashed as text: the OID
 * of a type of ours is another one on each server. */
struct Column {
    int index;
    std::int16_t length; /* as attlen; -1: varlena */
    bool is_by_value;
    bool is_text;
    std::uint64_t seed;
    FmgrInfo output; /* if is_text */
};

struct Columns {
    Column* first;
    int count;
    bool has_virtual; /* a generated column that is not stored; from PostgreSQL 18 on */
};

std::uint64_t hash_of(const void* bytes, std::size_t length, std::uint64_t seed)
{
    return hash_bytes_extended(static_cast<const unsigned char*>(bytes), static_cast<int>(length),
                               seed);
}

/* The finalizer of MurmurHash3: each bit of the input changes half of the output's. */
std::uint64_t mixed(std::uint64_t hash)
{
    hash = (hash ^ (hash >> 33)) * 0xFF51AFD7ED558CCDULL;
    hash = (hash ^ (hash >> 33)) * 0xC4CEB9FE1A85EC53ULL;
    return hash ^ (hash >> 33);
}

/* Types whose values have the same bytes on every server, and no OID among them. */
bool has_same_bytes(Oid type)
{
    switch (type) {
    case BOOLOID:
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case FLOAT4OID:
    case FLOAT8OID:
    case NUMERICOID:
    case DATEOID:
    case TIMEOID:
    case TIMETZOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
    case INTERVALOID:
    case UUIDOID:
    case CHAROID:
    case TEXTOID:
    case VARCHAROID:
    case BPCHAROID:
    case BYTEAOID:
    case JSONOID:
    case JSONBOID:
        return true;
    default:
        return false;
    }
}

/* An array of a domain is not: it has the OID of the domain in it. */
bool is_hashed_by_bytes(Oid base)
{
    const Oid element = get_element_type(base);
    return has_same_bytes(OidIsValid(element) ? element : base);
}

Column column_of(const FormData_pg_attribute* attribute)
{
    const Oid base = getBaseType(attribute->atttypid);
    const bool is_text = !is_hashed_by_bytes(base);
    const char* name = NameStr(attribute->attname);
    Column column = {attribute->attnum - 1,
                     attribute->attlen,
                     attribute->attbyval,
                     is_text,
                     hash_of(name, strlen(name), is_text ? InvalidOid : base),
                     {}};
    if (is_text) {
        Oid function = InvalidOid;
        bool is_varlena = false;
        getTypeOutputInfo(base, &function, &is_varlena);
        fmgr_info(function, &column.output);
    }
    return column;
}

int by_name(const void* one, const void* other)
{
    return strcmp(NameStr((*static_cast<const FormData_pg_attribute* const*>(one))->attname),
                  NameStr((*static_cast<const FormData_pg_attribute* const*>(other))->attname));
}

/* The columns in the order of their names: a restored table that inherits can have another order.
 */
Columns columns_of(TupleDesc row)
{
    auto** sorted = static_cast<const FormData_pg_attribute**>(
        palloc0(sizeof(void*) * static_cast<std::size_t>(row->natts + 1)));
    int count = 0;
    for (int i = 0; i < row->natts; i++)
        if (!TupleDescAttr(row, i)->attisdropped)
            sorted[count++] = TupleDescAttr(row, i);
    qsort(sorted, static_cast<std::size_t>(count), sizeof(void*), by_name);
    Columns columns = {
        static_cast<Column*>(palloc0(sizeof(Column) * static_cast<std::size_t>(count + 1))), count,
        false};
    for (int i = 0; i < count; i++) {
        columns.first[i] = column_of(sorted[i]);
        columns.has_virtual = columns.has_virtual || sorted[i]->attgenerated == 'v';
    }
    return columns;
}

std::uint64_t hash_of_value(Column& column, Datum value, std::uint64_t seed)
{
    if (column.is_text) {
        const char* text = OutputFunctionCall(&column.output, value);
        return hash_of(text, strlen(text), seed);
    }
    if (column.is_by_value)
        return mixed(seed ^ value);
    if (column.length > 0)
        return hash_of(DatumGetPointer(value), static_cast<std::size_t>(column.length), seed);
    const varlena* bytes = PG_DETOAST_DATUM_PACKED(value);
    return hash_of(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), seed);
}

std::uint64_t hash_of_row(const Columns& columns, const TupleTableSlot* slot)
{
    std::uint64_t hash = 0;
    for (int i = 0; i < columns.count; i++) {
        Column& column = columns.first[i];
        /* NULL is the absence of the column. */
        if (!slot->tts_isnull[column.index])
            hash = hash_of_value(column, slot->tts_values[column.index], mixed(hash ^ column.seed));
    }
    return hash;
}

struct Digest {
    std::int64_t rows;
    bool is_known;
    std::uint64_t sum; /* modulo 2^64, so that it does not depend on the order of the rows */
};

struct Sum {
    Columns columns;
    Digest digest;
};

void add_row(TupleTableSlot* row, void* state)
{
    auto* sum = static_cast<Sum*>(state);
    sum->digest.sum += hash_of_row(sum->columns, row);
    sum->digest.rows++;
}

Digest digest_of(Relation table)
{
    Sum sum = {columns_of(RelationGetDescr(table)), {}};
    sum.digest.is_known = !sum.columns.has_virtual;
    stored::read(table, add_row, &sum);
    return sum.digest;
}

} // namespace

extern "C" {

/*
 * snowflake_internal.digest(tbl regclass, OUT rows bigint, OUT digest bigint)
 *
 * The number of the rows of the table alone, without its children, and the sum of their hashes.
 * Tables of two servers with the same digest have the same rows, as ROW(...)::text with the columns
 * in the order of their names. Tables with the same rows can have other digests: on another
 * architecture, for example. NULL for a table with virtual columns. The caller sets DateStyle and
 * the like, because values of some types are hashed as text. Equal digests tell of no accident;
 * somebody who may write to the table can choose rows with the digest of others.
 *
 *   42P01, 42809, 42501   as stored::open()
 */
PG_FUNCTION_INFO_V1(snowflake_digest);
PGDLLEXPORT Datum snowflake_digest(PG_FUNCTION_ARGS)
{
    const Relation table = stored::open(PG_GETARG_OID(0));
    const Digest digest = digest_of(table);
    table_close(table, NoLock);
    Datum values[] = {Int64GetDatum(digest.rows),
                      Int64GetDatum(static_cast<std::int64_t>(digest.sum))};
    bool nulls[] = {false, !digest.is_known};
    PG_RETURN_DATUM(row_of(fcinfo, values, nulls));
}
}
