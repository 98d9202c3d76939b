-- The accounts that have a domain which points back to them, each with its shortest one.
--
-- returns: workchain, account, domain; in no order
select
    owner_workchain as workchain,
    owner as account,
    domain
from latest('dns_records')
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
