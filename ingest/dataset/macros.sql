-- The database is removed when it is closed: to rewrite what a log has would be in vain.
pragma disable_checkpoint_on_shutdown;
set checkpoint_threshold = '1TB';

-- Texts of the data set: hashes are base64, addresses are WORKCHAIN:HEX. Another text becomes NULL,
-- which is a flaw of its row.
create or replace macro hash_of(text) as
    case
        -- With one sign of filling these are 32 bytes.
        when strlen(text) = 44 and suffix(text, '=') and not suffix(text, '==')
            then try(from_base64(text))
    end;
create or replace macro workchain_of(text) as try_cast(split_part(text, ':', 1) as integer);
create or replace macro account_of(text) as
    case
        when length(text) - strpos(text, ':') = 64
            then try(unhex(substr(text, strpos(text, ':') + 1)))
    end;

-- A join keeps its right side in memory. Without a count of the incoming rows the optimizer would
-- take these, with all bodies, for the smaller side.
set disabled_optimizers = 'join_order,build_side_probe_side';

-- Rows are loaded in the order of the files: to sort those of a whole day takes more memory than
-- there is.
