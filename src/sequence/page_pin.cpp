/* The pin on a sequence's page: see page_pin.h. */
#include "sequence/page_pin.h"

namespace snowflake::page_pin
{
namespace
{

/* One pin: a session that draws from thousands of sequences must not pin thousands of pages. */
struct HeldPin {
    Buffer buffer; /* InvalidBuffer: none */
    Oid relation;  /* the file of a temporary relation may have the same locator as another's */
    pg::FileLocator file;
};
HeldPin held = {InvalidBuffer, InvalidOid, {}};

/* The top transaction owns the pin, as it owns the lock on the sequence. */
class AsTopTransaction
{
public:
    AsTopTransaction() : previous_(CurrentResourceOwner)
    {
        CurrentResourceOwner = TopTransactionResourceOwner;
    }
    /* An error jumps past this; the abort sets the owner itself. */
    ~AsTopTransaction() { CurrentResourceOwner = previous_; }
    AsTopTransaction(const AsTopTransaction&) = delete;
    AsTopTransaction& operator=(const AsTopTransaction&) = delete;

private:
    ResourceOwner previous_;
};

void release()
{
    if (!BufferIsValid(held.buffer))
        return;
    const Buffer buffer = held.buffer;
    held.buffer = InvalidBuffer;
    const AsTopTransaction owner;
    ReleaseBuffer(buffer);
}

/*
 * Both events come before the transaction's resource owner is released, which warns of a pin that
 * is left at commit. An abort releases pins itself, before it unlinks files.
 */
void at_transaction_end(XactEvent event, void*)
{
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
        release();
    else if (event == XACT_EVENT_ABORT)
        held.buffer = InvalidBuffer;
}

/*
 * After this event ROLLBACK TO unlinks the files of sequences that the subtransaction made.
 * smgrDoPendingDeletes() fails on a page that is pinned.
 */
void at_subtransaction_end(SubXactEvent event, SubTransactionId, SubTransactionId, void*)
{
    if (event == SUBXACT_EVENT_ABORT_SUB)
        release();
}

/*
 * For the first draw of a transaction: saves opening the relation and the lookup in the buffer
 * table. ReadRecentBuffer() compares the buffer's tag under the header lock, so it does not take a
 * buffer that holds another page by now.
 */
bool pin_recent(const PageAddress& address)
{
    const AsTopTransaction owner;
    return BufferIsValid(address.recent_buffer) &&
           ReadRecentBuffer(address.file, MAIN_FORKNUM, 0, address.recent_buffer);
}

/*
 * ReadBuffer() can fail (another session's temporary sequence, a broken disk), and a subtransaction
 * may catch that. So the current resource owner owns the reference and the pin until the read has
 * succeeded; then the top transaction takes a pin of its own.
 */
void read_and_pin(PageAddress& address)
{
    const Relation relation = relation_open(address.relation, NoLock);
    address.recent_buffer = ReadBuffer(relation, 0);
    relation_close(relation, NoLock);
    {
        const AsTopTransaction owner;
        IncrBufferRefCount(address.recent_buffer);
    }
    ReleaseBuffer(address.recent_buffer);
}

} // namespace

void initialize()
{
    RegisterXactCallback(at_transaction_end, nullptr);
    RegisterSubXactCallback(at_subtransaction_end, nullptr);
}

Buffer pin(PageAddress& address)
{
    if (BufferIsValid(held.buffer) && held.relation == address.relation &&
        pg::same_file(held.file, address.file))
        return held.buffer;

    release();
    if (!pin_recent(address))
        read_and_pin(address);
    held = {address.recent_buffer, address.relation, address.file};
    return held.buffer;
}

} // namespace snowflake::page_pin
