"""Settings of ingest: ``[ingest]``, ``[follow]``, ``[liteserver]``, ``[tvm]`` and ``[metadata]``.

Code that needs several sections takes ``IngestSections``, which includes those of the lake.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from tonlake.lake.settings import LakeSections


class IngestSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ingest decodes and derives, and how much at a time."""

    mc_blocks_per_commit: Annotated[
        int, Meta(description="Most masterchain blocks in one commit", ge=1)
    ] = 1000
    commit_bytes: Annotated[
        int, Meta(description="A commit is cut once its rows take this much memory", ge=1)
    ] = 128 << 20
    mc_blocks_per_chunk: Annotated[
        int, Meta(description="Most masterchain blocks decoded as one chunk", ge=1)
    ] = 64
    cached_rows: Annotated[
        int,
        Meta(description="State cells, and account states, kept in memory between commits", ge=1),
    ] = 100_000
    block_proofs: Annotated[
        bool, Meta(description="Keep the proofs and signatures that a node has of its blocks")
    ] = True
    detect_contracts: Annotated[
        bool,
        Meta(description="Detect at ingest which accounts are wallets, jettons, NFTs and the like"),
    ] = True
    classify_actions: Annotated[
        bool,
        Meta(description="Classify traces into actions at ingest; else `tonlake rebuild actions`"),
    ] = True


class FollowSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often a follower polls, how long it retries, and when it counts as late."""

    poll_ms: Annotated[
        int, Meta(description="Milliseconds between polls for new blocks with --follow", ge=1)
    ] = 50
    event_pipe: Annotated[
        str,
        Meta(
            description="Named pipe that the node has as --db-event-fifo: an event there ends the"
            " pause between two polls, and signed blocks are streamed as confirmed; empty: none"
        ),
    ] = ""
    patience_ms: Annotated[
        int,
        Meta(
            description="Milliseconds for which a block that cannot be read is retried before it"
            " is skipped and recorded as a hole",
            ge=0,
        ),
    ] = 30_000
    shorter_ms: Annotated[
        int,
        Meta(
            description="Milliseconds for which a node must report a chain shorter than the lake's"
            " before the blocks it lacks are undone",
            ge=0,
        ),
    ] = 5000
    undo_mc_blocks: Annotated[
        int,
        Meta(
            description="Most masterchain blocks that a follower undoes when the node has another"
            " chain; beyond that it stops and says what to do",
            ge=0,
        ),
    ] = 1000
    restart_s: Annotated[
        int, Meta(description="Most seconds before a follower that died is restarted", ge=1)
    ] = 30
    ready_lag_s: Annotated[
        int,
        Meta(
            description="/readyz answers 503 while a followed lake is at least this many seconds"
            " behind its node; 0: never",
            ge=0,
        ),
    ] = 60


class LiteServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How blocks are requested from lite servers."""

    poll_ms: Annotated[
        int, Meta(description="Milliseconds between requests for the newest block", ge=0)
    ] = 500
    queries: Annotated[
        int, Meta(description="Most queries sent to lite servers at the same time", ge=1)
    ] = 16
    kept_accounts: Annotated[
        int,
        Meta(
            description="Most accounts kept in the lake that were fetched from lite servers; 0:"
            " none",
            ge=0,
        ),
    ] = 1000
    proofs: Annotated[
        bool,
        Meta(
            description="Accept from lite servers only what validators signed, from the init_block"
            " of the configuration file on"
        ),
    ] = False


class TvmSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of get-methods and emulated messages."""

    workers: Annotated[
        int, Meta(description="Processes that run get-methods, started when needed", ge=1)
    ] = 2
    wall_ms: Annotated[int, Meta(description="Milliseconds a get-method may run", ge=1)] = 1000
    gas_limit: Annotated[int, Meta(description="Gas a get-method may use", ge=1)] = 4_000_000
    memory_mib: Annotated[
        int, Meta(description="Address space of a process that runs get-methods, in MiB", ge=256)
    ] = 1024
    emulator_library: Annotated[
        str,
        Meta(
            description="Path of the node's libemulator, which then runs get-methods and emulates"
            " messages; empty: tonlake's own TVM and tonpy do"
        ),
    ] = ""


class MetadataSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether and from where off-chain token content is fetched."""

    enabled: Annotated[
        bool,
        Meta(
            description="While serving, fetch token content stored outside of the chain, and"
            " pictures of tokens for the explorer"
        ),
    ] = False
    ipfs_gateway: Annotated[
        str,
        Meta(
            description="Gateway that replaces ipfs:// when token content is fetched; empty: such"
            " content is not fetched",
            pattern="^(https://.+/)?$",
        ),
    ] = "https://ipfs.io/ipfs/"
    networks: Annotated[
        str,
        Meta(
            description="Internal networks that token content may be fetched from, at any port,"
            " such as 10.1.0.0/16, separated by commas; empty: only public addresses at port 443"
        ),
    ] = ""


class IngestSections(LakeSections, frozen=True, forbid_unknown_fields=True):
    """All sections that ingest reads, including those of the lake."""

    ingest: IngestSettings = IngestSettings()
    follow: FollowSettings = FollowSettings()
    liteserver: LiteServerSettings = LiteServerSettings()
    tvm: TvmSettings = TvmSettings()
    metadata: MetadataSettings = MetadataSettings()


def encode_sections(settings: IngestSections) -> str:
    """Return ingest's sections as JSON for a child process, without those of a subclass."""
    sections = {name: getattr(settings, name) for name in IngestSections.__struct_fields__}
    return msgspec.json.encode(sections).decode()


def decode_sections(text: str) -> IngestSections:
    """Return the sections that a parent process encoded."""
    return msgspec.json.decode(text, type=IngestSections)
