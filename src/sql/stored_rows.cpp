/* The SQL function that returns the rows of a table without a query of it. */
#include "errors.h"
#include "pg.h"
#include "stored.h"

using namespace snowflake;

namespace
{

struct Rows {
    const ReturnSetInfo* result;
    int sources[MaxTupleAttributeNumber]; /* for each column of the result, that of the table */
};

int source_of(Relation table, const FormData_pg_attribute* wanted)
{
    const TupleDesc columns = RelationGetDescr(table);
    for (int i = 0; i < columns->natts; i++) {
        const FormData_pg_attribute* column = TupleDescAttr(columns, i);
        if (!column->attisdropped && column->atttypid == wanted->atttypid &&
            column->attgenerated != 'v' &&
            strcmp(NameStr(column->attname), NameStr(wanted->attname)) == 0)
            return i;
    }
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_COLUMN),
             errmsg("table %s has no stored column %s of type %s",
                    errors::name_of(RelationGetRelid(table)),
                    quote_identifier(NameStr(wanted->attname)), format_type_be(wanted->atttypid))));
}

void take(TupleTableSlot* row, void* state)
{
    const auto* rows = static_cast<const Rows*>(state);
    Datum values[MaxTupleAttributeNumber];
    bool nulls[MaxTupleAttributeNumber];
    for (int i = 0; i < rows->result->setDesc->natts; i++) {
        values[i] = row->tts_values[rows->sources[i]];
        nulls[i] = row->tts_isnull[rows->sources[i]];
    }
    tuplestore_putvalues(rows->result->setResult, rows->result->setDesc, values, nulls);
}

} // namespace

extern "C" {

/*
 * snowflake_internal.stored_rows(tbl regclass) returns setof record
 *
 * The columns that the call names, with their types. The table is found by its OID: a name could
 * lead to a view of another role by now, whose code would run with the rights of the caller.
 *
 *   42P01, 42809, 42501   as stored::open()
 *   42703                 no such column
 */
PG_FUNCTION_INFO_V1(snowflake_stored_rows);
PGDLLEXPORT Datum snowflake_stored_rows(PG_FUNCTION_ARGS)
{
    pg::begin_rows(fcinfo, pg::kRowsAsExpected);
    const Relation table = stored::open(PG_GETARG_OID(0));
    Rows rows = {reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), {}};
    for (int i = 0; i < rows.result->setDesc->natts; i++)
        rows.sources[i] = source_of(table, TupleDescAttr(rows.result->setDesc, i));
    stored::read(table, take, &rows);
    table_close(table, NoLock);
    return Datum{0};
}
}
