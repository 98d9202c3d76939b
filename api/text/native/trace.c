/* Writes a trace in one pass over its records: transactions, then the tree of their hashes. */
#include "trace.h"

#include "record.h"
#include "writer.h"

enum { HASH_BYTES = 32, NONE = -1 };
enum { USUAL_BYTES = 4096 }; /* of a transaction: room that is seldom extended, and then copied */

/* A transaction in the tree: its hash, the hash of its incoming message if any, whether it sent
 * messages, and its relatives by index. */
typedef struct {
    uint8_t hash[HASH_BYTES], message_hash[HASH_BYTES];
    int has_message, has_sent;
    Py_ssize_t parent, first_child, last_child, next;
} Node;

typedef struct {
    Node *nodes;
    Py_ssize_t count;
    PyObject *numbers; /* dict: index by hash */
} Tree;

/* Read a hash from a column. */
static int read_hash(PyObject *row, Column *column, uint8_t *hash)
{
    Value value;
    const uint8_t *data = NULL;
    size_t size = 0;
    if (read_column(row, column, 0, &value) < 0)
        return -1;
    int failed = !find_held_bytes(&value, &data, &size);
    if (!failed && size != HASH_BYTES) {
        PyErr_Format(PyExc_ValueError, "a hash has %zu bytes", size);
        failed = 1;
    }
    if (!failed)
        memcpy(hash, data, HASH_BYTES);
    drop_value(&value);
    return failed ? -1 : 0;
}

/* Append the node of a record, given its sources. */
static int take_node(Tree *tree, RecordParts *parts, PyObject *const *sources)
{
    Node *node = &tree->nodes[tree->count];
    Py_ssize_t sent = PyList_Size(sources[2]);
    *node = (Node){.parent = NONE, .first_child = NONE, .last_child = NONE, .next = NONE};
    node->has_message = sources[1] != Py_None;
    node->has_sent = sent > 0;
    if (sent < 0 || read_hash(sources[0], &parts->hash, node->hash) < 0)
        return -1;
    PyObject *hash = PyBytes_FromStringAndSize((const char *)node->hash, HASH_BYTES);
    PyObject *number = PyLong_FromSsize_t(tree->count++);
    int failed = !hash || !number || PyDict_SetItem(tree->numbers, hash, number) < 0;
    Py_XDECREF(number);
    Py_XDECREF(hash);
    if (failed)
        return -1;
    return node->has_message ? read_hash(sources[1], &parts->message_hash, node->message_hash) : 0;
}

/* Return the index of a hash; NONE with an exception if the trace does not have it. */
static Py_ssize_t find_node(const Tree *tree, PyObject *hash)
{
    PyObject *number = PyDict_GetItemWithError(tree->numbers, hash);
    if (!number && !PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, hash);
    return number ? PyLong_AsSsize_t(number) : NONE;
}

/* Append every node but the root to the children of its parent. */
static int link_nodes(Tree *tree, Py_ssize_t root, PyObject *parents)
{
    for (Py_ssize_t at = 0; at < tree->count; at++) {
        PyObject *hash = PyList_GetItem(parents, at);
        if (!hash)
            return -1;
        if (hash == Py_None || at == root)
            continue;
        Py_ssize_t parent = find_node(tree, hash);
        if (parent == NONE)
            return -1;
        Node *above = &tree->nodes[parent];
        tree->nodes[at].parent = parent;
        if (above->first_child == NONE)
            above->first_child = at;
        else
            tree->nodes[above->last_child].next = at;
        above->last_child = at;
    }
    return 0;
}

static int add_literal(Buffer *out, const char *text)
{
    return buffer_add(out, text, strlen(text));
}

static int add_hash(Buffer *out, const uint8_t *hash)
{
    if (buffer_add_char(out, '"') < 0 || buffer_add_base64(out, hash, HASH_BYTES) < 0)
        return -1;
    return buffer_add_char(out, '"');
}

/* Write a node up to its children: [] if it sent no messages, null if none of them has arrived
 * yet. */
static int open_node(Buffer *out, const Node *node)
{
    if (add_literal(out, "{\"tx_hash\":") < 0 || add_hash(out, node->hash) < 0)
        return -1;
    if (node->has_message && (add_literal(out, ",\"in_msg_hash\":") < 0 ||
                              add_hash(out, node->message_hash) < 0))
        return -1;
    if (add_literal(out, ",\"children\":") < 0)
        return -1;
    if (node->first_child != NONE)
        return add_literal(out, "[");
    return add_literal(out, node->has_sent ? "null}" : "[]}");
}

/* Write the tree below the root, without recursion. */
static int add_tree(Buffer *out, const Tree *tree, Py_ssize_t root)
{
    const Node *nodes = tree->nodes;
    Py_ssize_t at = root;
    while (1) {
        if (open_node(out, &nodes[at]) < 0)
            return -1;
        if (nodes[at].first_child != NONE) {
            at = nodes[at].first_child;
            continue;
        }
        while (at != root && nodes[at].next == NONE) {
            at = nodes[at].parent;
            if (add_literal(out, "]}") < 0)
                return -1;
        }
        if (at == root)
            return 0;
        at = nodes[at].next;
        if (add_literal(out, ",") < 0)
            return -1;
    }
}

static int add_order(Buffer *out, const Tree *tree)
{
    if (add_literal(out, "[") < 0)
        return -1;
    for (Py_ssize_t at = 0; at < tree->count; at++)
        if ((at && add_literal(out, ",") < 0) || add_hash(out, tree->nodes[at].hash) < 0)
            return -1;
    return add_literal(out, "]");
}

/* Write the transactions by hash, and append their nodes. */
static int add_transactions(Writer *writer, Tree *tree, Layout *layout, RecordParts *parts,
                            PyObject *records)
{
    Buffer *out = &writer->out;
    if (!buffer_room(out, (size_t)PyList_Size(records) * USUAL_BYTES) || add_literal(out, "{") < 0)
        return -1;
    for (Py_ssize_t at = 0; at < PyList_Size(records); at++) {
        PyObject *sources[RECORD_SOURCES];
        if (take_record(parts, PyList_GetItem(records, at), sources) < 0)
            return -1;
        int failed = take_node(tree, parts, sources) < 0 || (at && add_literal(out, ",") < 0) ||
                     add_hash(out, tree->nodes[at].hash) < 0 || add_literal(out, ":") < 0 ||
                     add_sources(writer, layout, sources, RECORD_SOURCES) < 0;
        drop_record(sources);
        if (failed)
            return -1;
    }
    return add_literal(out, "}");
}

static PyObject *to_bytes(const Buffer *text)
{
    return PyBytes_FromStringAndSize(text->data, (Py_ssize_t)text->size);
}

PyObject *write_trace(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule, *record, *root_hash, *records, *parents, *named, *found = NULL;
    if (!PyArg_ParseTuple(args, "OOSO!O!O!:write_trace", &capsule, &record, &root_hash, &PyList_Type,
                          &records, &PyList_Type, &parents, &PySet_Type, &named))
        return NULL;
    Layout *layout = open_layout(capsule);
    RecordParts *parts = layout ? open_record(record) : NULL;
    if (!parts)
        return NULL;
    Py_ssize_t count = PyList_Size(records);
    Writer writer = {.accounts = {.named = named}};
    Buffer tree_text = {0}, order = {0};
    Tree tree = {.nodes = PyMem_Calloc((size_t)count + 1, sizeof(Node)), .numbers = PyDict_New()};
    if (!tree.nodes)
        PyErr_NoMemory();
    if (tree.nodes && tree.numbers &&
        add_transactions(&writer, &tree, layout, parts, records) == 0) {
        Py_ssize_t root = find_node(&tree, root_hash);
        if (root != NONE && link_nodes(&tree, root, parents) == 0 &&
            add_tree(&tree_text, &tree, root) == 0 && add_order(&order, &tree) == 0)
            found = Py_BuildValue("(NNN)", to_bytes(&tree_text), to_bytes(&order),
                                  to_bytes(&writer.out));
    }
    PyMem_Free(tree.nodes);
    Py_XDECREF(tree.numbers);
    buffer_free(&tree_text);
    buffer_free(&order);
    free_writer(&writer);
    return found;
}
