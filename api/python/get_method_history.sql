-- The table function get_method_history, over the function that tonlake registers.
create or replace temp macro get_method_history(
    accounts, method, every := interval 1 hour, since := null, until := null
) as table
select unnest(
    run_get_method_history(
        regexp_extract_all(accounts::varchar, '[-\w.:+/=]+'),
        method::varchar, every::varchar, since::varchar, until::varchar
    ),
    recursive := true
)
