-- The key blocks whose configuration differs from the one before, newest first.
--
-- $limit integer  maximum number of rows
--
-- returns: mc_seqno (0: zero state), utime, params (numbers of new and changed parameters)
select
    mc_seqno,
    max(utime) as utime,
    list(param order by param) as params
from (
    select
        mc_seqno,
        utime,
        param,
        hash is distinct from lag(hash) over (
            partition by param
            order by mc_seqno
        ) as is_new
    from config_params
)
where is_new
group by mc_seqno
order by mc_seqno desc
limit $limit
