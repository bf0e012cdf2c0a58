/* The module: magic block and _PG_init(). */
#include "pg.h"
#include "sequence/page_pin.h"
#include "sequence/session.h"
#include "settings.h"

extern "C" {

/* From 18 on the macro leaves fields to be zero. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
PG_MODULE_MAGIC;
#pragma GCC diagnostic pop

PGDLLEXPORT void _PG_init(void);

void _PG_init(void)
{
    snowflake::settings::define();
    snowflake::page_pin::initialize();
    snowflake::session::initialize();
}
}
