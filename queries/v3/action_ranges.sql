-- The ranges of masterchain blocks whose traces are classified.
--
-- returns: first_mc_seqno, last_mc_seqno, classifier_version; in order
select
    first_mc_seqno,
    last_mc_seqno,
    classifier_version
from action_ranges
order by first_mc_seqno
