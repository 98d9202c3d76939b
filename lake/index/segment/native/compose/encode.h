/* Encodes rows as records: see module tonlake.lake.index.segment.shape for the format. */
#ifndef TONLAKE_ENCODE_H
#define TONLAKE_ENCODE_H

#include "growing.h"
#include "map.h"
#include "table.h"

enum { MAX_COLUMNS = 96 };

/* Columns of a kind of rows, their codes, and their places among those of a table. */
typedef struct {
    Kind kind;
    int count, body; /* place of the body, or -1 */
    char codes[MAX_COLUMNS];
    int places[MAX_COLUMNS];
} Layout;

/* The values that a row may refer to; NULL if there is none. */
typedef struct {
    const uint8_t *account, *in_hash, *hash_before, *state_before;
    int64_t lt, lt_before, now;
} Around;

typedef struct {
    uint64_t at; /* offset of the next record among all records */
    size_t max_remembered, max_numbered;
    Map shapes;
    Map seen; /* offsets of bytes among all records */
    Map numbered;
    Growing shape_list, number_list; /* Bytes: the keys of both, by number */
    Growing fresh;                   /* bytes of the record being written */
    Growing key;
    int64_t far_end; /* end of the far bytes that the row had last, or -1 */
    bool failed;     /* out of memory */
} Encoder;

/* Bytes that are in the record being written, and were not before. */
typedef struct {
    uint64_t hash;
    size_t at, size;
} Fresh;

/* Append an unsigned number. */
static inline void append_number(Growing *out, uint64_t number)
{
    uint8_t *to = grow(out, 10);
    if (!to)
        return;
    for (; number > 0x7f; number >>= 7)
        *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    out->size = (size_t)(to - out->data);
}

/* Append a row of a table; `bias` is added to its shape's number. */
void encode_row(Encoder *encoder, Growing *out, const Layout *layout, const Table *table,
                Place place, const Around *around, uint64_t bias);

/* Append bytes that are not constant: a reference to near or earlier bytes, or new bytes. */
void append_bytes(Encoder *encoder, Growing *out, Bytes value, const Around *around);
void append_next(Encoder *encoder, Growing *out, Bytes value);
void append_far(Encoder *encoder, Growing *out, Bytes value);
void append_numbered(Encoder *encoder, Growing *out, Bytes value);

/* Remember the offsets of bytes in a record, which begins at `start` of `out`. */
void end_record(Encoder *encoder, const Growing *out, size_t start);

/* Forget the bytes of a row outside of the records. */
void end_row(Encoder *encoder);

/* Return all shapes, a list of (kind, codes, constants), and the numbered hashes. */
PyObject *list_shapes(const Encoder *encoder, const Layout layouts[KINDS]);

void open_encoder(Encoder *encoder);
void free_encoder(Encoder *encoder);

#endif
