-- What NFT collections among some accounts say of themselves.
--
-- $workchains integer[]  workchains of the accounts
-- $accounts   blob[]     account ids
--
-- returns: the account, and these of its columns in the newest state; by account
select
    workchain,
    account,
    content
from nft_collections
where (workchain, account) in (
    select
        unnest($workchains::integer[]),
        unnest($accounts::blob[])
)
qualify row_number() over (
    partition by
        workchain,
        account
    order by mc_seqno desc
) = 1
order by
    workchain,
    account
