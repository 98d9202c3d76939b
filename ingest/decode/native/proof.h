/* Proofs of blocks for Python. */
#ifndef TONLAKE_PROOF_H
#define TONLAKE_PROOF_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* read_proof(data, workchain, shard, seqno, root_hash, file_hash) */
PyObject *read_proof(PyObject *args);

#endif
