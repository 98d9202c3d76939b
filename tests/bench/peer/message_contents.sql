-- Bodies and initial states, each once.
select
    peer_hash(body_hash) as hash,
    base64(any_value(body)) as body
from messages
where body is not null
group by body_hash
