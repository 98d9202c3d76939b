-- URLs of token metadata that are due, those never fetched first.
--
-- $now        bigint   Unix seconds
-- $everything boolean  include URLs that were abandoned or are not due yet
-- $max_chars integer  maximum length of a URL
-- $max_rows  integer  maximum number of rows
--
-- returns: uri, the first masterchain block that has it, and the last result
with named as (
    select
        json_extract_string(content, '$.uri') as uri,
        min(mc_seqno) as mc_seqno
    from (
        select content, mc_seqno from jetton_masters
        union all
        select content, mc_seqno from nft_collections
        union all
        select content, mc_seqno from nft_items
    )
    where content is not null
    group by 1
),

known as (
    select
        uri,
        arg_max((mc_seqno, fetched_at, attempts, retry_at, url, content), fetched_at) as last
    from offchain_metadata
    group by uri
)

select
    named.uri,
    coalesce(known.last[1], named.mc_seqno) as mc_seqno,
    coalesce(known.last[3], 0) as attempts,
    known.last[5] as url,
    known.last[6] as content
from named
left join known on named.uri = known.uri
where
    length(named.uri) between 1 and $max_chars
    and (known.uri is null or known.last[4] <= $now
        or ($everything and known.last[2] < $now))
order by known.uri is not null, named.mc_seqno, named.uri
limit $max_rows
