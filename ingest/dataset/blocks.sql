-- The blocks of some masterchain blocks, from the rows of several days, and those just before and
-- after: a block that is missing at midnight is only noticed at the next one of its shard.
create or replace table blocks as
select
    workchain,
    shard,
    seqno,
    mc_block_seqno as mc_seqno,
    hash_of(root_hash) as root_hash,
    hash_of(file_hash) as file_hash,
    global_id,
    version,
    after_merge,
    before_split,
    after_split,
    want_split,
    want_merge,
    key_block,
    vert_seqno_incr,
    flags,
    vert_seqno,
    gen_utime,
    try(make_timestamp(gen_utime * 1000000)) as time,
    start_lt,
    end_lt,
    validator_list_hash_short,
    gen_catchain_seqno,
    min_ref_mc_seqno,
    prev_key_block_seqno,
    master_ref_seqno,
    hash_of(rand_seed) as rand_seed,
    hash_of(created_by) as created_by,
    tx_count
from incoming
where mc_block_seqno between $first and $last or gen_utime between $start and $end
