-- Metadata fetched from the URIs in token content.
--
-- $uris text[]  the URIs, as contracts have them
--
-- returns: the URI, its state, whether it will be retried, and the JSON object; by URI
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
