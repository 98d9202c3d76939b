-- Jetton wallets at a masterchain block.
--
-- $workchains        integer[] = []     workchains of the wallets
-- $accounts          blob[]    = []     wallets; empty: any
-- $owner_workchains  integer[] = []     workchains of the owners
-- $owners            blob[]    = []     owners; empty: any
-- $jetton_workchains integer[] = []     workchains of the masters
-- $jettons           blob[]    = []     masters; empty: any
-- $exclude_zero      boolean   = false  exclude wallets with a zero balance
-- $by_account        boolean   = false  order by address
-- $by_owner          boolean   = false  order by owner first
-- $by_balance        boolean   = false  order by balance instead of first appearance
-- $descending        boolean   = true   highest balance first
-- $mc_seqno          bigint    = null   state at this masterchain block; null: newest
-- $limit             integer            maximum number of rows
-- $offset            integer   = 0      rows to skip
--
-- returns: the columns of jetton_wallets, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from jetton_wallets
    where
        in_pairs_or_any(workchain, account, $workchains, $accounts)
        and in_pairs_or_any(owner_workchain, owner, $owner_workchains, $owners)
        and in_pairs_or_any(jetton_workchain, jetton, $jetton_workchains, $jettons)
)

select
    workchain,
    account,
    mc_seqno,
    lt,
    utime,
    code_hash,
    data_hash,
    balance,
    owner_workchain,
    owner,
    jetton_workchain,
    jetton,
    is_claimed,
    first_lt
from matching_as_of('jetton_wallets', 'matching', $mc_seqno)
where not $exclude_zero or balance > 0
order by
    case when $by_owner then owner_workchain end,
    case when $by_owner then owner end,
    case when $by_balance and $descending then balance end desc,
    case when $by_balance and not $descending then balance end,
    case when not $by_account then first_lt end,
    workchain,
    account
limit $limit
offset $offset
