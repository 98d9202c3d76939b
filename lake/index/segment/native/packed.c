/* Writes, reads and searches packed numbers: see module tonlake.lake.index.segment.file. */
#include "numbers.h"

#define HEAD_BYTES 24
#define PADDING_BYTES 8
#define WIDEST 57
#define WORD 64
#define MAX_COUNT ((uint64_t)1 << 32)
#define MAX_ASCENDING ((uint64_t)1 << 30) /* so that a bit position fits in 32 bits */
#define START_BYTES 4
#define ROUNDS 2
#define FEW 64

enum { WHOLE, ASCENDING };

static uint64_t bytes_of(uint64_t bits)
{
    return (bits + 7) / 8;
}

static uint64_t starts_of(uint64_t count)
{
    return (count + GROUP - 1) / GROUP * START_BYTES;
}

/* Open the part after the low bits: the group starts, and the high bits. */
static bool open_ascending(Packed *packed, uint64_t size)
{
    uint64_t count = (uint64_t)packed->count;
    uint64_t low_bytes = bytes_of(count * packed->bits) + PADDING_BYTES;
    uint64_t start_bytes = starts_of(count);
    if (packed->bits > WIDEST || size < low_bytes + start_bytes)
        return false;
    packed->starts = packed->data + low_bytes;
    packed->highs = packed->starts + start_bytes;
    packed->high_bytes = size - low_bytes - start_bytes;
    return count <= packed->high_bytes * 8;
}

bool open_packed(const Py_buffer *view, Packed *packed)
{
    uint64_t count, room = (uint64_t)view->len - HEAD_BYTES - PADDING_BYTES;
    const uint8_t *head = view->buf;
    if (view->len < HEAD_BYTES + PADDING_BYTES) {
        PyErr_SetString(PyExc_ValueError, "packed numbers end too early");
        return false;
    }
    memcpy(&packed->least, head, sizeof packed->least);
    memcpy(&count, head + 8, sizeof count);
    packed->bits = head[16];
    packed->cut_bits = head[17];
    packed->count = (int64_t)count;
    packed->data = head + HEAD_BYTES;
    packed->highs = NULL;
    if ((packed->bits > WIDEST && packed->bits != WORD) || packed->cut_bits >= WORD ||
        head[18] > ASCENDING || count > MAX_COUNT || count * packed->bits > room * 8 ||
        (head[18] == ASCENDING && !open_ascending(packed, room + PADDING_BYTES))) {
        PyErr_SetString(PyExc_ValueError, "packed numbers are damaged");
        return false;
    }
    return true;
}

/* Return how many bits are set in each byte of a word and those below it, byte by byte. */
static uint64_t sum_bits(uint64_t word)
{
    uint64_t sums = word - (word >> 1 & 0x5555555555555555);
    sums = (sums & 0x3333333333333333) + (sums >> 2 & 0x3333333333333333);
    return ((sums + (sums >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101;
}

/* Return the place of the set bit of a word that has as many set bits below it, by its sums. */
static unsigned select_bit(uint64_t word, uint64_t sums, unsigned before)
{
    unsigned shift = 0;
    while ((sums >> shift & 0xff) <= before)
        shift += 8;
    if (shift)
        before -= (unsigned)(sums >> (shift - 8) & 0xff);
    for (word >>= shift; before; before--)
        word &= word - 1;
    return shift + (unsigned)__builtin_ctzll(word);
}

uint64_t high_at(const Packed *packed, int64_t at)
{
    uint32_t start;
    memcpy(&start, packed->starts + at / GROUP * START_BYTES, sizeof start);
    unsigned before = (unsigned)(at % GROUP); /* set bits to skip */
    if (!before)
        return start - (uint64_t)at;
    uint64_t word, mask = UINT64_MAX << start % WORD;
    for (uint64_t byte = start / WORD * 8; byte + 8 <= packed->high_bytes; byte += 8) {
        memcpy(&word, packed->highs + byte, sizeof word);
        word &= mask;
        mask = UINT64_MAX;
        uint64_t sums = sum_bits(word);
        unsigned set = (unsigned)(sums >> 56);
        if (before < set)
            return byte * 8 + select_bit(word, sums, before) - (uint64_t)at;
        before -= set;
    }
    return 0; /* the bytes are damaged: any value will do */
}

/* Lower bound in sorted numbers: below low they are less than the target, from high on not. */
typedef struct {
    int64_t low, high;
} Bounds;

static void probe(const Packed *packed, int64_t cut, int64_t at, Bounds *bounds)
{
    if (at < bounds->low || at >= bounds->high)
        return;
    if (packed_at(packed, at) < cut)
        bounds->low = at + 1;
    else
        bounds->high = at;
}

/* Interpolate the position of a number, as hashes are spread evenly, and search near it:
   this touches a few places in memory where binary search touches twenty. */
static void narrow(const Packed *packed, int64_t cut, Bounds *bounds)
{
    int64_t count = bounds->high - bounds->low, beside = 1;
    int64_t first = packed_at(packed, bounds->low), last = packed_at(packed, bounds->high - 1);
    if (cut <= first || cut > last)
        return;
    double share = ((double)cut - (double)first) / ((double)last - (double)first);
    int64_t middle = bounds->low + (int64_t)(share * (double)(count - 1));
    while (beside * beside < count)
        beside *= 2;
    probe(packed, cut, middle - beside, bounds);
    probe(packed, cut, middle + beside, bounds);
}

int64_t find_packed(const Packed *packed, uint64_t key)
{
    int64_t cut = (int64_t)(key >> packed->cut_bits);
    Bounds bounds = {0, packed->count};
    for (int round = 0; round < ROUNDS && bounds.high - bounds.low > FEW; round++)
        narrow(packed, cut, &bounds);
    while (bounds.low < bounds.high)
        probe(packed, cut, middle_of(bounds.low, bounds.high), &bounds);
    return bounds.low < packed->count && packed_at(packed, bounds.low) == cut ? bounds.low : -1;
}

static unsigned count_bits(uint64_t value)
{
    unsigned bits = 0;
    for (; value; value >>= 1)
        bits++;
    return bits <= WIDEST ? bits : WORD;
}

/* The packing of numbers. */
typedef struct {
    int64_t least;
    unsigned bits;
    uint64_t high_bits; /* 0: not ascending */
    uint64_t size;
} Layout;

/* Choose the smaller coding, or the plain one. */
static Layout choose_layout(const int64_t *values, uint64_t count, bool shortest)
{
    int64_t least = count ? values[0] : 0, most = least;
    bool ascend = shortest && count && count < MAX_ASCENDING;
    for (uint64_t at = 1; at < count; at++) {
        ascend = ascend && values[at - 1] <= values[at];
        least = values[at] < least ? values[at] : least;
        most = values[at] > most ? values[at] : most;
    }
    uint64_t range = (uint64_t)most - (uint64_t)least, rest = HEAD_BYTES + PADDING_BYTES;
    Layout whole = {.least = least, .bits = count_bits(range)}, split = {.least = least};
    whole.size = rest + bytes_of(count * whole.bits);
    if (!ascend)
        return whole;
    while (range >> split.bits >= 2 * count)
        split.bits++;
    split.high_bits = count + (range >> split.bits);
    split.size = rest + bytes_of(count * split.bits) + starts_of(count) +
                 (split.high_bits + WORD - 1) / WORD * 8;
    return split.bits <= WIDEST && split.size < whole.size ? split : whole;
}

/* Write the low bits of each number's difference from the least; out is zeroed. */
static void write_bits(uint8_t *out, const int64_t *values, uint64_t count, const Layout *layout)
{
    uint64_t mask = layout->bits < WORD ? ((uint64_t)1 << layout->bits) - 1 : UINT64_MAX;
    for (uint64_t at = 0; at < count; at++) {
        uint64_t bit = at * layout->bits, word;
        memcpy(&word, out + bit / 8, sizeof word);
        word |= (((uint64_t)values[at] - (uint64_t)layout->least) & mask) << bit % 8;
        memcpy(out + bit / 8, &word, sizeof word);
    }
}

/* Set a bit for each number at its high part plus its index; and write the position of the first
   one of each group. */
static void write_highs(uint8_t *out, const int64_t *values, uint64_t count, const Layout *layout)
{
    uint8_t *highs = out + starts_of(count);
    for (uint64_t at = 0; at < count; at++) {
        uint64_t above = (uint64_t)values[at] - (uint64_t)layout->least;
        uint64_t place = (above >> layout->bits) + at;
        uint32_t start = (uint32_t)place;
        if (at % GROUP == 0)
            memcpy(out + at / GROUP * START_BYTES, &start, sizeof start);
        highs[place / 8] |= (uint8_t)(1 << place % 8);
    }
}

PyObject *pack_numbers(PyObject *self, PyObject *args)
{
    Py_buffer view;
    unsigned char cut_bits;
    int shortest;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*bp:pack_numbers", &view, &cut_bits, &shortest))
        return NULL;
    const int64_t *values = view.buf;
    uint64_t count = (uint64_t)view.len / 8;
    Layout layout = choose_layout(values, count, shortest);
    PyObject *packed = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)layout.size);
    if (packed) {
        uint8_t *out = (uint8_t *)PyBytes_AsString(packed), *data = out + HEAD_BYTES;
        memset(out, 0, layout.size);
        memcpy(out, &layout.least, sizeof layout.least);
        memcpy(out + 8, &count, sizeof count);
        out[16] = (uint8_t)layout.bits;
        out[17] = cut_bits;
        out[18] = layout.high_bits ? ASCENDING : WHOLE;
        write_bits(data, values, count, &layout);
        if (layout.high_bits)
            write_highs(data + bytes_of(count * layout.bits) + PADDING_BYTES, values, count,
                        &layout);
    }
    PyBuffer_Release(&view);
    return packed;
}
