-- A page of NFT transfers, aborted ones included.
--
-- $workchains            integer[] = []     workchains of the items
-- $accounts              blob[]    = []     items; empty: any
-- $collection_workchains integer[] = []     workchains of the collections
-- $collections           blob[]    = []     collections; empty: any
-- $owner_workchains      integer[] = []     workchains of the owners
-- $owners                blob[]    = []     owners; empty: any
-- $outgoing              boolean   = true   include transfers sent by the owners
-- $incoming              boolean   = true   include transfers received by the owners
-- $start_utime           bigint    = null   first unix second
-- $end_utime             bigint    = null   last unix second
-- $start_lt              bigint    = null   first logical time
-- $end_lt                bigint    = null   last logical time
-- $by_time               boolean   = false  order by time before logical time
-- $descending            boolean   = true   newest first
-- $limit                 integer            maximum number of rows
-- $offset                integer   = 0      rows to skip
--
-- returns: the columns of nft_transfers; in order
select
    workchain,
    account,
    lt,
    mc_seqno,
    now,
    tx_hash,
    aborted,
    query_id,
    item_index,
    collection_workchain,
    collection,
    old_owner_workchain,
    old_owner,
    new_owner_workchain,
    new_owner,
    response_destination_workchain,
    response_destination,
    forward_amount,
    custom_payload,
    forward_payload,
    forward_payload_inline
from nft_transfers
where
    in_pairs_or_any(workchain, account, $workchains, $accounts)
    and in_pairs_or_any(collection_workchain, collection, $collection_workchains, $collections)
    and is_move_of(
        old_owner_workchain, old_owner, new_owner_workchain, new_owner,
        $owner_workchains, $owners, $outgoing, $incoming
    )
    and in_range(now, $start_utime, $end_utime)
    and in_range(lt, $start_lt, $end_lt)
order by
    case when $descending then if($by_time, now, lt) end desc,
    case when not $descending then if($by_time, now, lt) end,
    case when $descending then lt end desc,
    case when not $descending then lt end,
    workchain,
    account
limit $limit
offset $offset
