/* Layouts compiled into nodes (module program), and the interpreter that runs them. */
#ifndef TONLAKE_BODY_DECODE_H
#define TONLAKE_BODY_DECODE_H

#include "bag.h"
#include "out.h"

/* The operation of a node; its arguments follow it. The numbers are those of module program. */
enum {
    OP_UINT, /* bits */
    OP_INT,  /* bits */
    OP_BOOL,
    OP_BITS,         /* bits */
    OP_VAR_UINT,     /* limit, bits of the length */
    OP_ADDRESS,
    OP_MAYBE,        /* node */
    OP_EITHER,       /* two nodes */
    OP_REFERENCE,    /* node */
    OP_WRAPPED,      /* node */
    OP_RECORD,       /* text or -1, parts: text, node, switch or -1, bit or -1, count or -1 */
    OP_UNION,        /* choices: tag, bits of the tag, node */
    OP_HASHMAP,      /* bits of the key, node */
    OP_MAYBE_HASHMAP, /* bits of the key, node */
    OP_REST,
    OP_LINKED_RAW,
    OP_SNAKE_TEXT,
    OP_SNAKE_BYTES,
    OP_SHORT_TEXT,
    OP_CHUNKED_TEXT,
    OP_UNREADABLE,
    OP_CHUNKS, /* node */
    OP_DECLINED,
    OPERATIONS,
};

typedef struct {
    const int32_t *code;
    const int32_t *starts;  /* of the nodes in the code */
    const int32_t *opcodes; /* triples, sorted: unsigned opcode, first and number of layouts */
    const int32_t *layouts; /* nodes */
    unsigned opcode_count;
    const char **texts;
    uint32_t *sizes;
    int32_t signed_node, wallet_node;
} Program;

typedef enum { FAILED, READ, DECLINED } Result;

typedef struct {
    const Program *program;
    Bag bag;
    Out out;
    long visits, raw_bytes; /* remaining, counted as the codecs do */
    long shows, shown_bytes; /* remaining, including layouts that do not fit */
    Order *order;
    unsigned level;
    uint8_t *scratch;
    size_t scratch_room; /* at least MAX_WRITTEN */
    uint8_t *snake; /* space for the bytes of all cells */
    size_t snake_room;
} Work;

/* Write the object of a body, or nothing. `opcode` is set to the first 32 bits, or -1. DECLINED:
   the reference decoder has to decode it. */
Result decode_body(Work *work, const uint8_t *data, size_t size, bool with_wallets,
                   int64_t *opcode);

/* Append one field of a body, without its key; the layout is a record of the program. FAILED:
   another opcode, or the body does not fit; ignore the appended text. Only that field is written,
   none for -1; `is_there` is false if the body does not have it. */
Result decode_field(Work *work, const uint8_t *data, size_t size, uint32_t opcode, int32_t node,
                    int32_t field, bool *is_there);

#endif
