/* Reads the proof of a block and the form of its signatures. TL-B: block_proof#c3,
   block_signatures#11, block_signatures_simplex#12, ed25519_signature#5. Like
   ingest/decode/block/proof.py, to which it leaves everything that is not as it should be. */
#include "proof.h"

#include "hashmap.h"

#define PROOF_TAG 0xc3
#define PLAIN_TAG 0x11
#define SIMPLEX_TAG 0x12
#define ED25519_TAG 0x5
#define SHARD_PREFIX_MAX_BITS 60
#define KEY_BITS 16
#define SIGNATURE_BYTES 64
#define PAIR_BITS (8 * HASH_BYTES + 4 + 8 * SIGNATURE_BYTES)
#define BLOCK_TAG 0x11ef55aa
#define INFO_TAG 0x9bc7a987
#define SNAKE_BYTES 4096

typedef struct {
    int64_t workchain, shard, seqno;
    const char *root_hash, *file_hash;
} BlockName;

/* The set of signatures of a proof; `root` is the dictionary, `candidate` what was voted for. */
typedef struct {
    uint32_t list_hash, catchain_seqno, count, root, slot, candidate;
    uint64_t weight;
    bool has_root, has_vote;
    Hash session_id;
} SignatureSet;

static bool is_at_end(const Slice *slice)
{
    return !slice->failed && !slice_bits_left(slice) && !slice_refs_left(slice);
}

/* Read BlockIdExt and compare it. */
static bool names_block(Slice *slice, const BlockName *name)
{
    unsigned head = (unsigned)slice_uint(slice, 8);
    int64_t workchain = slice_int(slice, 32);
    uint64_t prefix = slice_uint(slice, 64);
    int64_t seqno = (int64_t)slice_uint(slice, 32);
    Hash root_hash = slice_hash(slice), file_hash = slice_hash(slice);
    if (slice->failed || head > SHARD_PREFIX_MAX_BITS)
        return false;
    uint64_t shard = prefix | 1ULL << (63 - head);
    return prefix == (shard & (shard - 1)) && workchain == name->workchain &&
           (int64_t)shard == name->shard && seqno == name->seqno &&
           !memcmp(root_hash.bytes, name->root_hash, HASH_BYTES) &&
           !memcmp(file_hash.bytes, name->file_hash, HASH_BYTES);
}

/* Verify the id and the Merkle proof; find the block in it, and the signatures, if any. */
static Status open_proof(Tree *tree, const BlockName *name, uint32_t *block, bool *is_signed,
                         uint32_t *signatures)
{
    Slice proof = slice_open(tree, tree->root);
    if (slice_uint(&proof, 8) != PROOF_TAG || !names_block(&proof, name))
        return NOT_MINE;
    const Cell *merkle = &tree->cells[slice_ref(&proof)];
    *is_signed = slice_maybe_ref(&proof, signatures);
    if (!is_at_end(&proof) || cell_kind(merkle) != MERKLE_PROOF ||
        memcmp(merkle->data + 1, name->root_hash, HASH_BYTES))
        return NOT_MINE;
    *block = merkle->refs[0];
    return tree_digest_whole(tree);
}

static bool read_set(const Tree *tree, uint32_t cell, SignatureSet *set)
{
    Slice slice = slice_open(tree, cell);
    uint64_t tag = slice_uint(&slice, 8);
    set->list_hash = (uint32_t)slice_uint(&slice, 32);
    set->catchain_seqno = (uint32_t)slice_uint(&slice, 32);
    set->count = (uint32_t)slice_uint(&slice, 32);
    set->weight = slice_uint(&slice, 64);
    set->has_root = slice_maybe_ref(&slice, &set->root);
    set->has_vote = tag == SIMPLEX_TAG;
    if (set->has_vote) {
        set->session_id = slice_hash(&slice);
        set->slot = (uint32_t)slice_uint(&slice, 32);
        set->candidate = slice_ref(&slice);
    }
    return is_at_end(&slice) && (set->has_vote || tag == PLAIN_TAG);
}

/* Return whether the header of the block names the validator set of the signatures. */
static bool has_same_validators(const Tree *tree, uint32_t block, const SignatureSet *set)
{
    Slice slice = slice_open(tree, block);
    bool right = slice_uint(&slice, 32) == BLOCK_TAG;
    slice_skip(&slice, 32); /* global_id */
    Slice info = slice_open(tree, slice_ref(&slice));
    for (int i = 0; i < 3; i++)
        slice_ref(&slice); /* value_flow, state_update, extra */
    right &= slice_uint(&info, 32) == INFO_TAG;
    slice_skip(&info, 216); /* up to shard */
    slice_skip(&info, 160); /* gen_utime, start_lt, end_lt */
    right &= slice_uint(&info, 32) == set->list_hash;
    right &= slice_uint(&info, 32) == set->catchain_seqno;
    slice_skip(&info, 64); /* min_ref_mc_seqno, prev_key_block_seqno */
    return right && !slice.failed && !info.failed;
}

/* Append an item, taking its reference; false if it is NULL or there is no memory. */
static bool add_item(PyObject *list, PyObject *item)
{
    bool done = list && item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return done;
}

/* List (short id of the key, signature), whose keys are 0, 1 and so on. */
static Status list_signatures(const Tree *tree, const SignatureSet *set, PyObject *list)
{
    Hashmap map;
    Hash key, node_id;
    Slice value;
    uint8_t signature[SIGNATURE_BYTES];
    uint32_t count = 0;
    if (!set->has_root)
        return set->count ? NOT_MINE : DONE;
    hashmap_open(&map, tree, set->root, KEY_BITS);
    while (hashmap_next(&map, &key, &value)) {
        node_id = slice_hash(&value);
        uint64_t tag = slice_uint(&value, 4);
        slice_bytes(&value, signature, sizeof signature);
        if (value.failed || tag != ED25519_TAG || load_be(key.bytes, KEY_BITS / 8) != count++)
            return NOT_MINE;
        if (!add_item(list, Py_BuildValue("y#y#", node_id.bytes, (Py_ssize_t)HASH_BYTES, signature,
                                          (Py_ssize_t)sizeof signature)))
            return NO_MEMORY;
    }
    return map.failed || count != set->count ? NOT_MINE : DONE;
}

/* List number of references, bits, and label of each node, the last child first. */
static Status list_nodes(const Tree *tree, const SignatureSet *set, PyObject *list)
{
    uint32_t todo[KEY_BITS * MAX_REFS + 1], waiting = 0;
    if (set->has_root)
        todo[waiting++] = set->root;
    for (uint32_t left = 2 * set->count; waiting && left; left--) {
        const Cell *cell = &tree->cells[todo[--waiting]];
        unsigned refs = cell_ref_count(cell), bits = cell->bits, label = bits;
        Slice slice = slice_open(tree, (uint32_t)(cell - tree->cells));
        if (!refs)
            label = bits < PAIR_BITS ? MAX_BITS : bits - PAIR_BITS;
        if (slice.failed || label > 64 || waiting + refs > KEY_BITS * MAX_REFS)
            return NOT_MINE;
        unsigned long long value = slice_uint(&slice, label);
        if (!add_item(list, Py_BuildValue("IIK", refs, bits, value)))
            return NO_MEMORY;
        for (unsigned i = 0; i < refs; i++)
            todo[waiting++] = cell->refs[i];
    }
    return DONE;
}

/* Read a chain of cells, the next one in the only reference. */
static Status read_snake(const Tree *tree, uint32_t cell, uint8_t *to, size_t *size)
{
    for (*size = 0;; cell = tree->cells[cell].refs[0]) {
        Slice slice = slice_open(tree, cell);
        unsigned bytes = slice_bits_left(&slice) / 8, refs = slice_refs_left(&slice);
        if (slice.failed || slice_bits_left(&slice) % 8 || refs > 1 || *size + bytes > SNAKE_BYTES)
            return NOT_MINE;
        slice_bytes(&slice, to + *size, bytes);
        *size += bytes;
        if (!refs)
            return DONE;
    }
}

static Status pack_set(const Tree *tree, const SignatureSet *set, PyObject **result)
{
    uint8_t candidate[SNAKE_BYTES];
    size_t size = 0;
    PyObject *signatures = PyList_New(0), *nodes = PyList_New(0);
    Status status = signatures && nodes ? DONE : NO_MEMORY;
    if (status == DONE)
        status = list_signatures(tree, set, signatures);
    if (status == DONE)
        status = list_nodes(tree, set, nodes);
    if (status == DONE && set->has_vote)
        status = read_snake(tree, set->candidate, candidate, &size);
    if (status == DONE && set->has_vote)
        *result = Py_BuildValue("IIKOO(y#Iy#)", set->list_hash, set->catchain_seqno,
                                (unsigned long long)set->weight, signatures, nodes,
                                set->session_id.bytes, (Py_ssize_t)HASH_BYTES, set->slot, candidate,
                                (Py_ssize_t)size);
    else if (status == DONE)
        *result = Py_BuildValue("IIKOOO", set->list_hash, set->catchain_seqno,
                                (unsigned long long)set->weight, signatures, nodes, Py_None);
    Py_XDECREF(signatures);
    Py_XDECREF(nodes);
    return status;
}

static Status read_tree(Tree *tree, const BlockName *name, PyObject **result)
{
    SignatureSet set = {0};
    uint32_t block = 0, signatures = 0;
    bool is_signed = false;
    Status status = open_proof(tree, name, &block, &is_signed, &signatures);
    if (status != DONE)
        return status;
    if (!is_signed) {
        *result = PyTuple_New(0);
        return DONE;
    }
    if (!read_set(tree, signatures, &set) || !has_same_validators(tree, block, &set))
        return NOT_MINE;
    return pack_set(tree, &set, result);
}

PyObject *read_proof(PyObject *args)
{
    BlockName name;
    PyObject *data, *result = NULL;
    Py_ssize_t root_size, file_size;
    long long workchain, shard, seqno;
    if (!PyArg_ParseTuple(args, "SLLLy#y#", &data, &workchain, &shard, &seqno, &name.root_hash,
                          &root_size, &name.file_hash, &file_size))
        return NULL;
    if (root_size != HASH_BYTES || file_size != HASH_BYTES) {
        PyErr_SetString(PyExc_ValueError, "a hash has 32 bytes");
        return NULL;
    }
    name.workchain = workchain;
    name.shard = shard;
    name.seqno = seqno;
    const uint8_t *bytes = (const uint8_t *)PyBytes_AsString(data);
    size_t size = (size_t)PyBytes_Size(data);
    Tree tree = {0};
    Status status = boc_has_right_crc(bytes, size) ? tree_parse(&tree, bytes, size) : NOT_MINE;
    if (status == DONE)
        status = read_tree(&tree, &name, &result);
    tree_free(&tree);
    if (status == NOT_MINE)
        Py_RETURN_NONE;
    if (status == NO_MEMORY && !PyErr_Occurred())
        PyErr_NoMemory();
    return result;
}
