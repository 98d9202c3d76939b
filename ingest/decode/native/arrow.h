/* Exports tables as arrays of Arrow's C data interface, which Arrow adopts without copying. */
#ifndef TONLAKE_ARROW_H
#define TONLAKE_ARROW_H

#include "cdata.h"
#include "slab.h"
#include "table.h"

/* Export the rows of a table as a struct array with a child per column, sorted as in the schema;
   NOT_MINE if a column exceeds 2 GiB. */
Status table_export(const Table *table, TableName name, Pool *pool, struct ArrowArray *to);

#endif
