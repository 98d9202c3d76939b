-- Differences between the actions of two versions of the classifier.
--
-- One row for each kind of change: how many actions of a type were added, removed or changed.
--
-- $before integer = null  older version; null: any
-- $after  integer = null  newer version; null: any
--
-- returns: before_version, after_version, change (added, removed, changed), type, actions,
-- example (hex hash of a trace's root transaction); most frequent first
with was as (
    select
        trace_id,
        action_id,
        type,
        success,
        accounts,
        details,
        classifier_version
    from superseded_actions
    where $before is null or classifier_version = $before
),

now_said as (
    select
        trace_id,
        action_id,
        type,
        success,
        accounts,
        details,
        classifier_version
    from actions
    where
        equal_or_any(classifier_version, $after)
        and trace_id in (select trace_id from was)
),

compared as (
    select
        coalesce(was.trace_id, now_said.trace_id) as trace_id,
        coalesce(now_said.type, was.type) as type,
        case
            when was.action_id is null then 'added'
            when now_said.action_id is null then 'removed'
            when
                (was.success, was.type, was.details, was.accounts)
                is distinct from (
                    now_said.success, now_said.type, now_said.details, now_said.accounts
                )
                then 'changed'
        end as change
    from was
    full join now_said
        on was.trace_id = now_said.trace_id and was.action_id = now_said.action_id
)

select
    (select max(classifier_version) from was) as before_version,
    (select max(classifier_version) from now_said) as after_version,
    change,
    type,
    count(*) as actions,
    lower(hex(any_value(trace_id))) as example
from compared
where change is not null
group by change, type
order by actions desc, change, type
