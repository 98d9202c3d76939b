"""Tables of network-wide masterchain state: configuration and public libraries."""

from tonlake.lake.schema.column import Column, Table

CONFIG_PARAMS = Table(
    name="config_params",
    doc="All configuration parameters at each key block and at the zero state (mc_seqno 0).",
    key=("mc_seqno", "param"),
    sort=("mc_seqno", "param"),
    columns=(
        Column("mc_seqno", "int64", "Key block; parameters are valid until the next one"),
        Column("utime", "int64", "Unix seconds of the key block"),
        Column("param", "int32", "Parameter number, signed"),
        Column("hash", "hash", "Hash of the parameter's cell"),
        Column("boc", "bytes", "The parameter's cell as bag of cells"),
    ),
)

LIBRARIES = Table(
    name="libraries",
    doc="Changes of the public library collection of the masterchain (LibDescr).",
    key=("mc_seqno", "hash"),
    sort=("mc_seqno", "hash"),
    columns=(
        Column("mc_seqno", "int64", "Masterchain block of the change"),
        Column("hash", "hash", "Hash of the library's root cell"),
        Column("present", "bool", "True: published or changed; false: removed"),
        Column("publishers", "hashes", "Masterchain accounts that publish it"),
    ),
)
