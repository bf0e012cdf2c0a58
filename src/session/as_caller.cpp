#include "as_caller.h"
#include "errors.h"

using namespace snowflake;

namespace
{

/* After an error AbortTransaction() or AbortSubTransaction() restores the user ID: that of the time
 * when the transaction or the savepoint began, which is the role's. */
template <typename Command>
void with_rights_of(Oid caller, Command command)
{
    Oid user = InvalidOid;
    int context = 0;
    GetUserIdAndSecContext(&user, &context);
    SetUserIdAndSecContext(caller, context | SECURITY_LOCAL_USERID_CHANGE);
    command();
    SetUserIdAndSecContext(user, context);
}

/* As ProcessUtilitySlow(). */
template <typename Command>
void with_event_triggers(Node* statement, Command command)
{
    PreventCommandIfReadOnly(GetCommandTagName(CreateCommandTag(statement)));
    PushActiveSnapshot(GetTransactionSnapshot());
    const bool has_triggers = EventTriggerBeginCompleteQuery();
    PG_TRY();
    {
        EventTriggerDDLCommandStart(statement);
        command();
        EventTriggerDDLCommandEnd(statement);
    }
    PG_FINALLY();
    {
        if (has_triggers)
            EventTriggerEndCompleteQuery();
    }
    PG_END_TRY();
    PopActiveSnapshot();
}

/* The schema of this transaction: nobody else can give it to another role until its end. */
void require_owner(Oid schema, const char* name, Oid role)
{
    CommandCounterIncrement();
    if (const Oid owner = errors::owner_of_schema(schema); owner != role)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("schema %s belongs to role %s, and the session is of role %s",
                               quote_identifier(name), errors::name_of_role(owner),
                               errors::name_of_role(role))));
}

} // namespace

void session::as_caller::create_schema(const char* name, Oid role, Oid caller)
{
    auto* statement = makeNode(CreateSchemaStmt);
    statement->schemaname = pstrdup(name);
    statement->authrole = makeNode(RoleSpec);
    statement->authrole->roletype = ROLESPEC_CSTRING;
    statement->authrole->rolename = GetUserNameFromId(role, false);
    with_event_triggers(reinterpret_cast<Node*>(statement),
                        [&] { with_rights_of(caller, [&] { pg::create_schema(statement); }); });
}

void session::as_caller::rename_schema(const char* name, const char* new_name, Oid role, Oid caller)
{
    auto* statement = makeNode(RenameStmt);
    statement->renameType = OBJECT_SCHEMA;
    statement->subname = pstrdup(name);
    statement->newname = pstrdup(new_name);
    Node* node = reinterpret_cast<Node*>(statement);
    with_event_triggers(node, [&] {
        ObjectAddress address = InvalidObjectAddress;
        with_rights_of(caller, [&] { address = RenameSchema(name, new_name); });
        require_owner(address.objectId, name, role);
        EventTriggerCollectSimpleCommand(address, InvalidObjectAddress, node);
    });
}

void session::as_caller::comment(Oid catalog, const char* name, const char* description, Oid caller)
{
    auto* statement = makeNode(CommentStmt);
    statement->objtype =
        catalog == PublicationRelationId ? OBJECT_PUBLICATION : OBJECT_SUBSCRIPTION;
    statement->object = reinterpret_cast<Node*>(makeString(pstrdup(name)));
    statement->comment = pstrdup(description);
    Node* node = reinterpret_cast<Node*>(statement);
    with_event_triggers(node, [&] {
        ObjectAddress address = InvalidObjectAddress;
        with_rights_of(caller, [&] { address = CommentObject(statement); });
        EventTriggerCollectSimpleCommand(address, InvalidObjectAddress, node);
    });
}
