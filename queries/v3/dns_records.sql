-- Domains by wallet record or by name at a masterchain block; shortest first.
--
-- $workchains        integer[] = []    workchains of the items
-- $accounts          blob[]    = []    items; empty: any
-- $wallet_workchains integer[] = []    workchains of the accounts in wallet records
-- $wallets           blob[]    = []    accounts in wallet records; empty: any
-- $domain            text      = null  full domain name
-- $mc_seqno          bigint    = null  state at this masterchain block; null: newest
-- $limit             integer           maximum number of rows
-- $offset            integer   = 0     rows to skip
--
-- returns: the columns of dns_records, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from dns_records
    where
        in_pairs_or_any(workchain, account, $workchains, $accounts)
        and in_pairs_or_any(wallet_workchain, wallet, $wallet_workchains, $wallets)
        and equal_or_any(domain, $domain)
)

select
    workchain,
    account,
    mc_seqno,
    lt,
    utime,
    code_hash,
    data_hash,
    domain,
    collection_workchain,
    collection,
    owner_workchain,
    owner,
    next_resolver_workchain,
    next_resolver,
    wallet_workchain,
    wallet,
    site_adnl,
    storage_bag_id,
    first_lt
from matching_as_of('dns_records', 'matching', $mc_seqno)
order by
    length(domain),
    domain,
    workchain,
    account
limit $limit
offset $offset
