-- Conversions to and from text. They work in DuckDB 1.5 and 2.x; NULL in gives NULL out.

create or replace macro ton_base64(hash) as
    to_base64(hash);

create or replace macro ton_base64url(hash) as
    translate(to_base64(hash), '+/', '-_');

-- A hash from its hex, base64 or base64url form.
create or replace macro ton_hash(form) as
    case
        when regexp_full_match(form, '[0-9a-fA-F]{64}') then unhex(form)
        else from_base64(translate(form, '-_', '+/'))
    end;

-- Raw form of an address: workchain, colon, 64 hex digits.
create or replace macro ton_address(workchain, account) as
    workchain || ':' || hex(account::blob);

-- One byte of CRC-16/XMODEM (polynomial 0x1021, start 0): x is (crc >> 8) xor byte, folded.
create or replace macro ton_crc16_fold(x) as
    xor(x, x >> 4);
create or replace macro ton_crc16_mix(crc, x) as
    xor(xor((crc << 8) & 65535, (x << 12) & 65535), xor(x << 5, x));
create or replace macro ton_crc16_step(crc, byte) as
    ton_crc16_mix(crc, ton_crc16_fold(xor(crc >> 8, byte)));
create or replace macro ton_crc16(bytes) as
    list_reduce(
        list_prepend(
            0,
            list_transform(
                range(octet_length(bytes)),
                lambda i: ('0x' || substr(hex(bytes), (2 * i + 1)::bigint, 2))::int
            )
        ),
        lambda crc, byte: ton_crc16_step(crc, byte)
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
create or replace macro ton_friendly(workchain, account, bounceable := true, testnet := false) as
    ton_friendly_whole(ton_friendly_body(workchain, account, bounceable, testnet));

-- The two parts of an address in raw or friendly form; the checksum is not looked at.
create or replace macro ton_account(form) as
    case
        when contains(form, ':') then unhex(split_part(form, ':', 2))
        else unhex(substr(hex(from_base64(translate(form, '-_', '+/'))), 5, 64))
    end;
create or replace macro ton_workchain(form) as
    case
        when contains(form, ':') then split_part(form, ':', 1)::int
        -- The byte is signed.
        else (('0x' || substr(hex(from_base64(translate(form, '-_', '+/'))), 3, 2))::int + 128) % 256 - 128
    end;

-- Nanoton as TON, exactly.
create or replace macro ton_coins(nano) as
    nano::decimal(20, 0) * 0.000000001::decimal(10, 9);

-- Shard as 16 hex digits.
create or replace macro ton_shard(shard) as
    printf('%016X', shard);

-- Opcode as clients write it: 0x and eight hex digits.
create or replace macro ton_opcode(opcode) as
    printf('0x%08x', opcode::bigint & 4294967295);

-- Unix seconds as a UTC timestamp.
create or replace macro ton_time(unix_seconds) as
    make_timestamp(unix_seconds::bigint * 1000000);
