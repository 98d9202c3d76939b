-- Jettons, NFT collections, domains and labels with a name or symbol similar to a text.
--
-- $text  text     text to search, in any case
-- $limit integer  maximum number of rows
--
-- returns: kind (jetton, collection, domain or label), workchain, account, name, symbol,
-- likeness (0: equal, 1: begins with the text, 2: contains it, 3: similar spelling);
-- most similar first
with tokens as (
    select
        'jetton' as kind,
        workchain,
        account,
        content
    from latest('jetton_masters')
    union all
    select
        'collection' as kind,
        workchain,
        account,
        content
    from latest('nft_collections')
),

fetched as (
    select
        uri,
        content
    from offchain_metadata
    where content is not null
    qualify row_number() over (
        partition by uri
        order by fetched_at desc
    ) = 1
),

named as (
    select
        tokens.kind,
        tokens.workchain,
        tokens.account,
        coalesce(
            json_extract_string(tokens.content, '$.name'),
            json_extract_string(fetched.content, '$.name')
        ) as name,
        coalesce(
            json_extract_string(tokens.content, '$.symbol'),
            json_extract_string(fetched.content, '$.symbol')
        ) as symbol
    from tokens
    left join fetched on fetched.uri = json_extract_string(tokens.content, '$.uri')
    union all
    select
        'domain' as kind,
        workchain,
        account,
        domain as name,
        null as symbol
    from latest('dns_records')
    union all
    select
        'label' as kind,
        workchain,
        account,
        label as name,
        null as symbol
    from labels
),

compared as (
    select
        kind,
        workchain,
        account,
        name,
        symbol,
        lower($text) as wanted,
        lower(coalesce(name, '')) as name_lower,
        lower(coalesce(symbol, '')) as symbol_lower
    from named
)

select
    kind,
    workchain,
    account,
    name,
    symbol,
    case
        when wanted in (name_lower, symbol_lower) then 0
        when starts_with(name_lower, wanted) or starts_with(symbol_lower, wanted) then 1
        when contains(name_lower, wanted) or contains(symbol_lower, wanted) then 2
        when
            greatest(
                jaro_winkler_similarity(name_lower, wanted),
                jaro_winkler_similarity(symbol_lower, wanted)
            ) >= 0.88
            then 3
    end as likeness
from compared
where likeness is not null
order by
    likeness,
    length(name),
    name,
    workchain,
    account
limit $limit
