-- The configuration that a key block carries, or the zero state (0).
--
-- $mc_seqno bigint  key block
-- $param    integer = null  one parameter; all by default
--
-- returns: parameters by number
select
    param,
    boc
from config_params
where
    mc_seqno = $mc_seqno
    and equal_or_any(param, $param)
order by param
