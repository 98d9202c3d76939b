-- The transaction that sent a message, or the one that received it.
--
-- $direction             text     out: of the sender, in: of the receiver
-- $source_workchain      integer  workchain of the sender
-- $source                blob     account of the sender
-- $destination_workchain integer  workchain of the receiver
-- $destination           blob     account of the receiver
-- $created_lt            bigint   logical time of the message
--
-- returns: its hash and logical time
select
    t.lt,
    t.hash
from messages as m
inner join transactions as t
    on
        t.workchain = m.tx_workchain
        and t.account = m.tx_account
        and t.lt = m.tx_lt
where
    m.direction = $direction
    and m.source_workchain = $source_workchain
    and m.source = $source
    and m.destination_workchain = $destination_workchain
    and m.destination = $destination
    and m.created_lt = $created_lt
order by t.lt
limit 1
