#include "generator.h"
#include "page_pin.h"
#include "pg.h"
#include "rollback.h"
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
    snowflake::rollback::initialize();
    snowflake::generator::initialize();
}
}
