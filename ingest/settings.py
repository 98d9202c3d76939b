"""Settings of ingest: ``[ingest]``, ``[follow]``, ``[liteserver]``, ``[tvm]`` and ``[metadata]``.

Code that needs several sections takes ``IngestSections``, which includes those of the lake.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from tonlake.lake.settings import Count, LakeSections, Positive


class IngestSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ingest decodes and derives, and how much at a time."""

    mc_blocks_per_commit: Annotated[Positive, "Most masterchain blocks in one commit"] = 1000
    commit_bytes: Annotated[Positive, "A commit is cut once its rows take this much memory"] = (
        128 << 20
    )
    mc_blocks_per_chunk: Annotated[Positive, "Most masterchain blocks decoded as one chunk"] = 125
    cached_rows: Annotated[
        Positive, "State cells, and account states, kept in memory between commits; half a KiB each"
    ] = 100_000
    block_proofs: Annotated[
        bool, "Keep the proofs and signatures that a node has of its blocks"
    ] = True
    detect_contracts: Annotated[
        bool, "Detect at ingest which accounts are wallets, jettons, NFTs and the like"
    ] = True
    classify_actions: Annotated[
        bool, "Classify traces into actions at ingest; else `tonlake rebuild actions`"
    ] = True


class FollowSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often a follower polls, how long it retries, and when it counts as late."""

    poll_ms: Annotated[Positive, "Milliseconds between polls for new blocks with --follow"] = 50
    event_pipe: Annotated[
        str,
        "Named pipe that the node has as --db-event-fifo: an event there ends the pause between"
        " two polls, and signed blocks are streamed as confirmed; empty: none",
    ] = ""
    patience_ms: Annotated[
        Count,
        "Milliseconds for which a block that cannot be read is retried before it is skipped and"
        " recorded as a hole",
    ] = 30_000
    shorter_ms: Annotated[
        Count,
        "Milliseconds for which a node must report a chain shorter than the lake's before the"
        " blocks it lacks are undone",
    ] = 5000
    undo_mc_blocks: Annotated[
        Count,
        "Most masterchain blocks that a follower undoes when the node has another chain; beyond"
        " that it stops and says what to do",
    ] = 1000
    restart_s: Annotated[Positive, "Most seconds before a follower that died is restarted"] = 30
    ready_lag_s: Annotated[
        Count,
        "/readyz answers 503 while a followed lake is at least this many seconds behind its node;"
        " 0: never",
    ] = 60


class LiteServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How blocks are requested from lite servers."""

    poll_ms: Annotated[Count, "Milliseconds between requests for the newest block"] = 500
    queries: Annotated[Positive, "Most queries sent to lite servers at the same time"] = 16
    kept_accounts: Annotated[
        Count, "Most accounts kept in the lake that were fetched from lite servers; 0: none"
    ] = 1000
    proofs: Annotated[
        bool,
        "Accept from lite servers only what validators signed, from the init_block of the"
        " configuration file on",
    ] = False


class TvmSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of get-methods and emulated messages."""

    workers: Annotated[Positive, "Processes that run get-methods, started when needed"] = 2
    wall_ms: Annotated[Positive, "Milliseconds a get-method may run"] = 1000
    gas_limit: Annotated[Positive, "Gas a get-method may use"] = 4_000_000
    memory_mib: Annotated[
        int, Meta(ge=256), "Address space of a process that runs get-methods, in MiB"
    ] = 1024
    emulator_library: Annotated[
        str,
        "Path of the node's libemulator, which then runs get-methods and emulates messages; empty:"
        " tonlake's own TVM and tonpy do",
    ] = ""


class MetadataSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether and from where off-chain token content is fetched."""

    enabled: Annotated[
        bool,
        "While serving, fetch token content stored outside of the chain, and pictures of tokens"
        " for the explorer",
    ] = False
    ipfs_gateway: Annotated[
        str,
        Meta(pattern="^(https://.+/)?$"),
        "Gateway that replaces ipfs:// when token content is fetched; empty: such content is not"
        " fetched",
    ] = "https://ipfs.io/ipfs/"
    networks: Annotated[
        str,
        "Internal networks that token content may be fetched from, at any port, such as"
        " 10.1.0.0/16, separated by commas; empty: only public addresses at port 443",
    ] = ""


class IngestSections(LakeSections, frozen=True, forbid_unknown_fields=True):
    """All sections that ingest reads, including those of the lake."""

    ingest: IngestSettings = IngestSettings()
    follow: FollowSettings = FollowSettings()
    liteserver: LiteServerSettings = LiteServerSettings()
    tvm: TvmSettings = TvmSettings()
    metadata: MetadataSettings = MetadataSettings()
