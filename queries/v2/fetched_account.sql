-- An account as fetched from a lite server, because the lake does not have its full history.
--
-- $workchain integer  workchain of the account
-- $account   blob     account id
-- $first     bigint   first masterchain block from which on no change of a state is missing
-- $mc_seqno  bigint   masterchain block after which the state is requested
-- $hash      blob     = null  hash of the Account cell, if known
--
-- returns: the Account cell and the last transaction; no row if none was fetched by then
select
    mc_seqno,
    hash,
    last_trans_lt,
    last_trans_hash,
    boc
from fetched_accounts
where
    workchain = $workchain
    and account = $account
    and mc_seqno between $first and $mc_seqno
    and ($hash is null or hash = $hash)
order by mc_seqno desc
limit 1
