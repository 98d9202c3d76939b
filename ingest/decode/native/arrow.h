/* Tables as arrays of Arrow's C data interface, which Arrow takes over without copying. */
#ifndef TONLAKE_ARROW_H
#define TONLAKE_ARROW_H

#include "../../../lake/file/native/cdata.h"
#include "slab.h"
#include "table.h"

/* Make a struct array of a table's rows, a child per column, sorted as the schema says; NOT_MINE if
   a column exceeds 2 GiB. */
Status table_export(const Table *table, TableName name, Pool *pool, struct ArrowArray *to);

#endif
