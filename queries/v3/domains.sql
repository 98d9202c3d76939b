-- The accounts that have a domain which points back to them, each with its shortest one.
--
-- returns: workchain, account, domain; in no order
with names as (
    select
        owner_workchain,
        owner,
        wallet_workchain,
        wallet,
        domain
    from dns_records
    qualify row_number() over (
        partition by
            workchain,
            account
        order by mc_seqno desc
    ) = 1
)

select
    owner_workchain as workchain,
    owner as account,
    domain
from names
where
    owner_workchain = wallet_workchain
    and owner = wallet
qualify row_number() over (
    partition by
        owner_workchain,
        owner
    order by
        length(domain),
        domain
) = 1
