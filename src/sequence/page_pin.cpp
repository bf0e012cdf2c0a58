/* The pin on a sequence's page: see page_pin.h. */
#include "sequence/page_pin.h"

namespace snowflake::page_pin
{
namespace
{

/* One pin: a session that draws from thousands of sequences must not pin thousands of pages. */
PageAddress* held = nullptr;

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

/*
 * Both events come before the transaction's resource owner is released, which warns of a pin that
 * is left at commit. An abort releases pins itself, before it unlinks files.
 */
void at_transaction_end(XactEvent event, void*)
{
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
        release();
    else if (event == XACT_EVENT_ABORT)
        held = nullptr;
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
    return BufferIsValid(address.buffer) &&
           ReadRecentBuffer(address.file, MAIN_FORKNUM, 0, address.buffer);
}

/*
 * ReadBuffer() can fail (another session's temporary sequence, a broken disk), and a subtransaction
 * may catch that. So the current resource owner owns the reference and the pin until the read has
 * succeeded; then the top transaction takes a pin of its own.
 */
void read_and_pin(PageAddress& address)
{
    const Relation relation = relation_open(address.relation, NoLock);
    address.buffer = ReadBuffer(relation, 0);
    relation_close(relation, NoLock);
    {
        const AsTopTransaction owner;
        IncrBufferRefCount(address.buffer);
    }
    ReleaseBuffer(address.buffer);
}

} // namespace

void release()
{
    if (held == nullptr)
        return;
    const Buffer buffer = held->buffer;
    held = nullptr;
    const AsTopTransaction owner;
    ReleaseBuffer(buffer);
}

void initialize()
{
    RegisterXactCallback(at_transaction_end, nullptr);
    RegisterSubXactCallback(at_subtransaction_end, nullptr);
}

void pin(PageAddress& address)
{
    if (held == &address)
        return;
    release();
    if (!pin_recent(address))
        read_and_pin(address);
    held = &address;
}

} // namespace snowflake::page_pin
