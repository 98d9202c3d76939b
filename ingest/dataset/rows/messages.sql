select
    *,
    case when source is null then 'none' else 'std' end as source_kind,
    case when destination is not null then 'std' end as destination_kind
from messages
where
    mc_seqno between $first and $last
    and mc_seqno not in (select mc_seqno from flaws)
