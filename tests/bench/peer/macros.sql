-- How the peer writes hashes and addresses.
create temp macro peer_hash(hash) as base64(hash);
create temp macro peer_address(workchain, account) as workchain || ':' || upper(hex(account));
