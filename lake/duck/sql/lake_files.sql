-- Views of a tonlake lake, for DuckDB 1.5 and 2.x. They show the newest published snapshot, also
-- in a session that stays open: `from lake_snapshot`. If the lake has moved: start DuckDB in its
-- folder, or first: set variable lake = '<its folder>';
set variable lake = coalesce(
    getvariable('lake'),
    (
        select
            coalesce(
                min('.'),
                error(
                    'there is no lake at ' || {root}
                    || ': start DuckDB in its folder, or first: set variable lake = ''<its folder>'''
                )
            )
        from glob('_log/views.parquet')
        having
            getvariable('lake') is null
            and not exists (from glob({root} || '/_log/views.parquet'))
    )
);

-- The path of a file of the lake; if its catalogue is the database itself, beside that.
create or replace macro lake_path(path) as
    coalesce(
        getvariable('lake'),
        case
            when regexp_full_match(current_setting('temp_directory'), '(.*/)?catalog\.duckdb\.tmp')
                then replace(current_setting('temp_directory'), 'catalog.duckdb.tmp', '.')
        end,
        {root}
    )
    || '/'
    || path;

-- The files of a table's folder that count. As an unnested list, DuckDB expects few of them, and
-- skips the others rather than read them. One that the folder did not have as the query began is
-- newer than the others.
create or replace macro live_files(name) as table
    select unnest(list(filename)) as filename
    from (
        select
            case
                when lake <> {lake}
                    then error(
                        'these views are of another lake than ' || listed.root
                        || ': set variable lake = ''<its folder>'''
                    )
                when held.file is null
                    then error('the lake changed as the query began: run it again')
                else listed.root || path
            end as filename
        from (
            select
                path,
                lake,
                left(filename, length(filename) - length('_log/views.parquet')) as root
            from read_parquet(lake_path('_log/[v]iews.parquet'), filename = true)
            where folder = name
        ) as listed
        left join glob(lake_path(name || '/day=*/*.parquet')) as held
            on held.file = listed.root || path
    );

create or replace view lake_snapshot as
select distinct
    commit,
    mc_seqno
from read_parquet(lake_path('_log/views.parquet'));
