-- Accounts of a workchain whose id lies between two others.
--
-- $workchain  integer  the workchain
-- $low        blob     least account id
-- $high       blob     greatest account id
-- $suffix     text     characters that the friendly address ends in; empty: any
-- $bounceable boolean  bounceable flag of that address
-- $test_only  boolean  test-only flag of that address
-- $first      bigint   lowest masterchain block to search
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
