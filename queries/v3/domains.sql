-- The shortest domain of each account that owns a domain pointing to itself.
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
