-- Texts of the data set: hashes are base64, addresses are WORKCHAIN:HEX.
create or replace macro hash_of(text) as from_base64(text);
create or replace macro workchain_of(text) as cast(split_part(text, ':', 1) as integer);
create or replace macro account_of(text) as unhex(split_part(text, ':', 2));
