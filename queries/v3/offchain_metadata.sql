-- Metadata fetched from the addresses in token content.
--
-- $uris text[]  the addresses, as contracts have them
--
-- returns: the address, its state, whether it is tried again, and the JSON object; by address
select
    uri,
    state,
    retry_at is not null as is_tried_again,
    content
from offchain_metadata
where in_list(uri, $uris::text[])
qualify row_number() over (
    partition by uri
    order by fetched_at desc
) = 1
order by uri
