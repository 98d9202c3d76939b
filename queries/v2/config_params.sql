-- The configuration in a key block, or in the zero state (0).
--
-- $mc_seqno bigint  key block
-- $param    integer = null  number of one parameter; null: all
--
-- returns: param, boc; by number
select
    param,
    boc
from config_params
where
    mc_seqno = $mc_seqno
    and equal_or_any(param, $param)
order by param
