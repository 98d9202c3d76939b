/* Writes bytes of a record, once if they repeat. */
#include "encode.h"

/* Shorter bytes are not worth a reference. */
enum { SHORTEST_FAR = 12 };

static bool equal(const uint8_t *hash, Bytes value)
{
    return hash && memcmp(hash, value.data, HASH_BYTES) == 0;
}

void append_bytes(Encoder *encoder, Growing *out, Bytes value, const Around *around)
{
    if (value.size == HASH_BYTES) {
        int form = equal(around->account, value)        ? OWN_ACCOUNT
                   : equal(around->in_hash, value)      ? IN_HASH
                   : equal(around->hash_before, value)  ? HASH_BEFORE
                   : equal(around->state_before, value) ? STATE_BEFORE
                                                        : LITERAL;
        if (form != LITERAL) {
            append_number(out, (uint64_t)form);
            return;
        }
    }
    append_far(encoder, out, value);
}

/* Find an earlier occurrence of bytes. */
static bool find_place(const Encoder *encoder, Bytes value, uint64_t hash, uint64_t *at)
{
    const Entry *entry = map_find(&encoder->seen, value, hash);
    if (entry)
        *at = entry->value;
    return entry != NULL;
}

static void append_literal(Encoder *encoder, Growing *out, Bytes value, uint64_t hash)
{
    append_number(out, LITERAL + value.size);
    if (value.size >= SHORTEST_FAR) {
        const Fresh fresh = {hash, out->size, value.size};
        append(&encoder->fresh, &fresh, sizeof fresh);
    }
    append(out, value.data, value.size);
}

void append_far(Encoder *encoder, Growing *out, Bytes value)
{
    uint64_t at, hash = map_hash(&encoder->seen, value);
    if (value.size < SHORTEST_FAR || !find_place(encoder, value, hash, &at)) {
        append_literal(encoder, out, value, hash);
        return;
    }
    encoder->far_end = (int64_t)(at + value.size);
    append_number(out, value.size == HASH_BYTES ? FAR_HASH : FAR_BYTES);
    if (value.size != HASH_BYTES)
        append_number(out, value.size);
    append_number(out, at);
}

/* Return the encoded size of a number. */
static int64_t count_bytes(uint64_t number)
{
    int64_t count = 1;
    for (; number > 0x7f; number >>= 7)
        count++;
    return count;
}

void append_next(Encoder *encoder, Growing *out, Bytes value)
{
    uint64_t at, hash = map_hash(&encoder->seen, value);
    if (value.size >= SHORTEST_FAR && find_place(encoder, value, hash, &at) &&
        (int64_t)at - count_bytes(LITERAL + value.size) == encoder->far_end)
        append_number(out, NEXT_BYTES);
    else
        append_far(encoder, out, value);
}

void append_numbered(Encoder *encoder, Growing *out, Bytes value)
{
    Map *map = &encoder->numbered;
    uint64_t hash = map_hash(map, value);
    Entry *entry = map_find(map, value, hash);
    if (!entry && map->count >= encoder->max_numbered) {
        append_number(out, 0);
        append_far(encoder, out, value);
        return;
    }
    uint64_t number = entry ? entry->value : map->count + 1;
    if (!entry) {
        if (!map_add(map, value, hash, number, true))
            encoder->failed = true;
        append(&encoder->number_list, value.data, value.size);
    }
    append_number(out, number);
}

void end_record(Encoder *encoder, const Growing *out, size_t start)
{
    const Fresh *fresh = (const Fresh *)(const void *)encoder->fresh.data;
    size_t count = encoder->fresh.size / sizeof *fresh;
    for (size_t at = 0; at < count && !out->failed; at++) {
        Bytes value = {out->data + fresh[at].at, fresh[at].size};
        uint64_t place = encoder->at + (fresh[at].at - start);
        if (!map_find(&encoder->seen, value, fresh[at].hash) &&
            !map_add(&encoder->seen, value, fresh[at].hash, place, true))
            encoder->failed = true;
    }
    end_row(encoder);
    encoder->at += out->size - start;
    if (encoder->seen.count > encoder->max_remembered)
        map_clear(&encoder->seen);
}

void end_row(Encoder *encoder)
{
    encoder->failed = encoder->failed || encoder->fresh.failed;
    encoder->fresh.size = 0;
}

void open_encoder(Encoder *encoder)
{
    /* Python's own string hashes are secret, unless PYTHONHASHSEED says otherwise. */
    static const char *const words[] = {"index", "segment"};
    for (int at = 0; at < 2; at++) {
        PyObject *word = PyUnicode_FromString(words[at]);
        uint64_t secret = word ? (uint64_t)PyObject_Hash(word) : 0;
        Py_XDECREF(word);
        encoder->shapes.secret[at] = encoder->seen.secret[at] =
            encoder->numbered.secret[at] = secret;
    }
}

void free_encoder(Encoder *encoder)
{
    map_clear(&encoder->shapes);
    map_clear(&encoder->seen);
    map_clear(&encoder->numbered);
    free_growing(&encoder->shape_list);
    free_growing(&encoder->number_list);
    free_growing(&encoder->fresh);
    free_growing(&encoder->key);
}
