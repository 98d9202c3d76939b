-- An account that no block of the lake touches, as it was fetched from a lite server.
--
-- $workchain integer  workchain of the account
-- $account   blob     account id
-- $first     bigint   first masterchain block from which on no change of a state is missing
-- $mc_seqno  bigint   masterchain block after which the state is asked for
--
-- returns: the Account cell and the last transaction; no row where none was fetched by then
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
order by mc_seqno desc
limit 1
