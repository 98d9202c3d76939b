-- Accounts whose id lies between two others, with the workchain that is asked for.
--
-- $workchain integer  the workchain
-- $low       blob     least account id
-- $high      blob     greatest one
-- $first     bigint   lowest masterchain block that is searched
-- $limit     integer  maximum number of rows
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
order by account
limit $limit
