#include "copy.h"
#include "errors.h"

using namespace snowflake;
using namespace snowflake::session;

namespace
{

/* COPY asks for bytes by a function without an argument of ours (copy_data_source_cb). */
StringInfo input = nullptr;

int read_input(void* target, int, int most)
{
    const int length = Min(input->len - input->cursor, most);
    pq_copymsgbytes(input, static_cast<char*>(target), length);
    return length;
}

List* read_names(StringInfo request)
{
    List* names = nullptr;
    for (int left = static_cast<int>(pq_getmsgint(request, 2)); left > 0; left--)
        names = lappend(names, makeString(pstrdup(pq_getmsgrawstring(request))));
    return names;
}

/* As copy_table() of the table synchronization does. */
std::uint64_t copy_from(Relation table, StringInfo request)
{
    List* columns = read_names(request);
    char* format = pstrdup(pq_getmsgrawstring(request));
    input = request;
    ParseState* state = make_parsestate(nullptr);
    addRangeTableEntryForRelation(state, table, RowExclusiveLock, nullptr, false, false);
    List* options =
        list_make1(makeDefElem(pstrdup("format"), reinterpret_cast<Node*>(makeString(format)), -1));
    CopyFromState copy =
        BeginCopyFrom(state, table, nullptr, nullptr, false, read_input, columns, options);
    const std::uint64_t count = CopyFrom(copy);
    EndCopyFrom(copy);
    return count;
}

/* A row of one column. */
void send_count(std::uint64_t count)
{
    const char* text = psprintf(UINT64_FORMAT, count);
    const auto length = static_cast<int>(strlen(text));
    StringInfoData message;
    pq_beginmessage(&message, 'D');
    pq_sendint16(&message, 1);
    pq_sendint32(&message, static_cast<std::uint32_t>(length));
    pq_sendbytes(&message, text, length);
    pq_endmessage(&message);
}

} // namespace

void copy::insert(StringInfo request, table::OfOwner of, bool waits)
{
    table::lock(of, RowExclusiveLock, waits);
    const Relation table = table_open(of.table, NoLock);
    errors::require_ordinary_table(table);
    std::uint64_t count = 0;
    PG_TRY();
    {
        pg::origin_of_writes() = DoNotReplicateId;
        count = copy_from(table, request);
    }
    PG_FINALLY();
    {
        pg::origin_of_writes() = pg::kNoOrigin;
    }
    PG_END_TRY();
    table_close(table, NoLock);
    send_count(count);
}
