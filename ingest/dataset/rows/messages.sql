select
    *,
    case when source is null then 'none' else 'std' end as source_kind,
    case when destination is not null then 'std' end as destination_kind
from part.messages
where mc_seqno between $first and $last
