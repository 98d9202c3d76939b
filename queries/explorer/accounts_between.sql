-- Accounts whose id lies between two others, with the workchain that is asked for.
--
-- $workchain  integer  the workchain
-- $low        blob     least account id
-- $high       blob     greatest one
-- $suffix     text     characters that the friendly address ends in; empty: any
-- $bounceable boolean  a flag of that address
-- $test_only  boolean  the other one
-- $first      bigint   lowest masterchain block that is searched
-- $limit      integer  maximum number of rows
--
-- returns: workchain, account; by account
select distinct
    workchain,
    account
from account_states
where
    workchain = $workchain
    and account between $low and $high
    and mc_seqno >= $first
    and (
        $suffix = ''
        or ends_with(
            ton_friendly(workchain, account, bounceable := $bounceable, testnet := $test_only),
            $suffix
        )
    )
order by account
limit $limit
