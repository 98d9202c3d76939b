-- Domains by the account in their wallet record, or by name, at a masterchain block; short first.
--
-- $workchains        integer[]         workchains of the items; none: any
-- $accounts          blob[]            items
-- $wallet_workchains integer[]         workchains of the accounts in wallet records; none: any
-- $wallets           blob[]            accounts in wallet records
-- $domain            text      = null  the whole name
-- $mc_seqno          bigint    = null  as of this masterchain block; null: the newest
-- $limit             integer           most rows
-- $offset            integer   = 0     rows to pass over
--
-- returns: the columns of dns_records, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from dns_records
    where
        (
            len($accounts::blob[]) = 0
            or (workchain, account) in (
                select
                    unnest($workchains::integer[]),
                    unnest($accounts::blob[])
            )
        )
        and (
            len($wallets::blob[]) = 0
            or (wallet_workchain, wallet) in (
                select
                    unnest($wallet_workchains::integer[]),
                    unnest($wallets::blob[])
            )
        )
        and ($domain is null or domain = $domain)
),

states as (
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
        min(lt) over (
            partition by
                workchain,
                account
        ) as first_lt
    from dns_records
    where
        ($mc_seqno is null or mc_seqno <= $mc_seqno)
        and (workchain, account) in (
            select
                workchain,
                account
            from matching
        )
    qualify row_number() over (
        partition by
            workchain,
            account
        order by mc_seqno desc
    ) = 1
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
from states
where
    (workchain, account, mc_seqno) in (
        select
            workchain,
            account,
            mc_seqno
        from matching
    )
order by
    length(domain),
    domain,
    workchain,
    account
limit $limit
offset $offset
