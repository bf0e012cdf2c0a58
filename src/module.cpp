#include "generator.h"
#include "page_pin.h"
#include "pg.h"
#include "settings.h"

extern "C" {

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void _PG_init(void)
{
    snowflake::settings::define();
    snowflake::page_pin::initialize();
    snowflake::generator::initialize();
}
}
