-- Conversions to and from text. They work in DuckDB 1.5 and 2.x; NULL in gives NULL out.

-- ton_base64: Hash as base64
create or replace macro ton_base64(hash) as
    to_base64(hash);

-- ton_base64url: Hash as base64url
create or replace macro ton_base64url(hash) as
    translate(to_base64(hash), '+/', '-_');

-- A hash from its form in hex (0x or not), base64 or base64url (padded or not); anything else is an
-- error.
-- ton_hash: 32 bytes of a hash in hex, base64 or base64url
create or replace macro ton_hash(form) as
    case
        when regexp_full_match(form, '(0[xX])?[0-9a-fA-F]{64}') then unhex(right(form, 64))
        when regexp_full_match(form, '[-_+/0-9A-Za-z]{43}=?')
            then from_base64(rpad(translate(form, '-_', '+/'), 44, '='))
        when form is not null
            then error(
                form || ' is not a hash: expected 64 hex digits, or 43 characters of base64 or base64url'
            )
    end;

-- Raw form of an address: workchain, colon, 64 hex digits.
-- ton_address: Raw address: workchain, colon, 64 hex digits
create or replace macro ton_address(workchain, account) as
    workchain || ':' || hex(account::blob);

-- CRC-16/XMODEM (polynomial 0x1021, start 0) of bytes, by hex digits: 4129 is 0x1021, whose product
-- with four bits has no carry.
create or replace macro ton_crc16(bytes) as
    list_reduce(
        list_prepend(
            0,
            list_transform(
                string_split(hex(bytes), ''),
                lambda digit: instr('123456789ABCDEF', digit)
            )
        ),
        lambda crc, digit: xor((crc & 4095) << 4, 4129 * xor(crc >> 12, digit))
    );

-- Friendly form of an address (TEP-2): flags, workchain, account, checksum, as base64url.
create or replace macro ton_friendly_body(workchain, account, bounceable, testnet) as
    unhex(
        printf(
            '%02x%02x',
            ((case when bounceable then 17 else 81 end) + (case when testnet then 128 else 0 end))::int,
            (workchain & 255)::int
        )
    )
    || account::blob;
create or replace macro ton_friendly_whole(body) as
    translate(to_base64(body || unhex(printf('%04x', ton_crc16(body)))), '+/', '-_');
-- ton_friendly: User-friendly address
create or replace macro ton_friendly(workchain, account, bounceable := true, testnet := false) as
    ton_friendly_whole(ton_friendly_body(workchain, account, bounceable, testnet));

-- The 36 bytes of a friendly form; NULL if the text is no base64.
create or replace macro ton_friendly_bytes(form) as
    try(from_base64(translate(form, '-_', '+/')));
-- The first byte is 11, 51, 91 or d1; the CRC-16 of bytes followed by their checksum is 0. Lengths stand
-- beside the patterns: a pattern with a long repetition takes 0.2 ms to compile, each time.
create or replace macro ton_is_friendly(form) as
    length(form) = 48
    and regexp_full_match(form, '[EUk0][Q-Za-f][-_+/0-9A-Za-z]+')
    and ton_crc16(ton_friendly_bytes(form)) = 0;
create or replace macro ton_is_raw(form) as
    regexp_full_match(form, '-?[0-9]{1,10}:[0-9a-fA-F]+') and length(split_part(form, ':', 2)) = 64;
create or replace macro ton_refuse(form) as
    error(
        form || ' is not an address: expected workchain:64 hex digits, or 48 characters whose checksum'
        || ' is right'
    );

-- Workchain and account of an address in raw or friendly form; anything else is an error.
-- ton_account: Account id of an address in raw or friendly form
create or replace macro ton_account(form) as
    case
        when ton_is_raw(form) then unhex(split_part(form, ':', 2))
        when ton_is_friendly(form) then ton_friendly_bytes(form)[3:34]
        when form is not null then ton_refuse(form)
    end;
-- ton_workchain: Workchain of an address in raw or friendly form
create or replace macro ton_workchain(form) as
    case
        when ton_is_raw(form) then split_part(form, ':', 1)::int
        -- The byte is signed.
        when ton_is_friendly(form)
            then (('0x' || hex(ton_friendly_bytes(form)[2:2]))::int + 128) % 256 - 128
        when form is not null then ton_refuse(form)
    end;

-- The raw form of an address, from which both parts are read at half the cost of the two above.
-- ton_raw: Raw form of an address in raw or friendly form
create or replace macro ton_raw(form) as
    case
        when ton_is_raw(form) then upper(form)
        -- The byte of the workchain is signed.
        when ton_is_friendly(form)
            then ton_address(
                (('0x' || hex(ton_friendly_bytes(form)[2:2]))::int + 128) % 256 - 128,
                ton_friendly_bytes(form)[3:34]
            )
        when form is not null then ton_refuse(form)
    end;

-- The same for raw forms that the lake itself has written, unchecked.
create or replace macro ton_raw_account(address) as
    try(unhex(split_part(address, ':', 2)));
create or replace macro ton_raw_workchain(address) as
    try_cast(split_part(address, ':', 1) as int);

-- Nanoton as TON, exact; sums over years of transfers are above 10^20.
-- ton_coins: Nanoton as TON, an exact decimal
create or replace macro ton_coins(nano) as
    nano::decimal(28, 0) * 0.000000001::decimal(10, 9);

-- An amount in the smallest unit, scaled by its decimals and rounded to nine places; NULL if the
-- decimals are unknown, or if the amount has more than 29 digits before the point.
create or replace macro ton_digits(units, decimals) as
    lpad(units::varchar, greatest(length(units::varchar), decimals + 1)::int, '0');
create or replace macro ton_pointed(digits, decimals) as
    left(digits, length(digits) - decimals) || '.' || right(digits, decimals) || '0';
-- ton_scaled: Amount by its decimals, to nine places
create or replace macro ton_scaled(units, decimals) as
    try_cast(ton_pointed(ton_digits(units, decimals), decimals) as decimal(38, 9));

-- The same, and NULL above 22 digits before the point: anybody can make tokens with such amounts, and a
-- few of them would overflow a sum, which fails the statement for all tokens.
create or replace macro ton_bounded(amount) as
    try_cast(amount as decimal(31, 9))::decimal(38, 9);
create or replace macro ton_amount(units, decimals) as
    ton_bounded(ton_scaled(units, decimals));

-- An exit code of the compute phase in words (codes of the TVM; contracts choose the others).
-- ton_exit_words: Exit code of the compute phase in words
create or replace macro ton_exit_words(code) as
    case code
        when 0 then 'success'
        when 1 then 'success, alternative'
        when 2 then 'stack underflow'
        when 3 then 'stack overflow'
        when 4 then 'integer overflow'
        when 5 then 'integer out of range'
        when 6 then 'invalid opcode'
        when 7 then 'type check error'
        when 8 then 'cell overflow'
        when 9 then 'cell underflow'
        when 10 then 'dictionary error'
        when 11 then 'unknown error'
        when 12 then 'fatal error'
        when 13 then 'out of gas'
        when -14 then 'out of gas'
        when 14 then 'virtualization error'
        else case when code is not null then 'thrown by the contract' end
    end;

-- A result code of the action phase in words.
-- ton_action_words: Result code of the action phase in words
create or replace macro ton_action_words(code) as
    case code
        when 0 then 'success'
        when 32 then 'invalid action list'
        when 33 then 'too many actions'
        when 34 then 'invalid or unsupported action'
        when 35 then 'invalid source address in an out message'
        when 36 then 'invalid destination address in an out message'
        when 37 then 'not enough TON'
        when 38 then 'not enough extra currencies'
        when 39 then 'out message does not fit into a cell'
        when 40 then 'message cannot be processed'
        when 41 then 'library reference is null'
        when 42 then 'library cannot be changed'
        when 43 then 'library has too many cells'
        when 50 then 'account state is too large'
        else case when code is not null then 'action failed' end
    end;

-- Shard as 16 hex digits.
-- ton_shard: Shard as 16 hex digits
create or replace macro ton_shard(shard) as
    printf('%016X', shard);

-- Opcode as clients write it: 0x and eight hex digits.
-- ton_opcode: Opcode as 0x and eight hex digits
create or replace macro ton_opcode(opcode) as
    printf('0x%08x', opcode::bigint & 4294967295);

-- The signed 32-bit number of an op-code from 0x and hex digits, or a signed or unsigned decimal;
-- anything else is an error.
create or replace macro ton_opcode_signed(number) as
    (case when number > 2147483647 then number - 4294967296 else number end)::int;
create or replace macro ton_opcode_number(form) as
    case
        when regexp_full_match(form::varchar, '0[xX][0-9a-fA-F]{1,8}')
            then ton_opcode_signed(try_cast(form::varchar as bigint))
        when try_cast(form::varchar as bigint) between -2147483648 and 4294967295
            then ton_opcode_signed(try_cast(form::varchar as bigint))
        when form is not null
            then error(form || ' is not an op-code: expected 0x and hex digits, or a decimal')
    end;

-- Unix seconds as a UTC timestamp.
-- ton_time: Unix seconds as a UTC timestamp
create or replace macro ton_time(unix_seconds) as
    make_timestamp(unix_seconds::bigint * 1000000);
