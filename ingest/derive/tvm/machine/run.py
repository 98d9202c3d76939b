"""Runs get-methods."""
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.tvm.machine import building, control, curves, dictops, environment, hashing, message, number, reading, shuffle
from tonlake.ingest.derive.tvm.machine.cell import Source, Cell, Slice, Builder
from tonlake.ingest.derive.tvm.machine.code import decode
from tonlake.ingest.derive.tvm.machine.state import Machine
from tonlake.ingest.derive.tvm import context as ctx
from tonlake.ingest.derive.tvm.stack import TvmCell, TvmSlice

_known={}
def _cell(boc):
    if boc not in _known:
        t=parse_boc(boc); _known[boc]=Source(t).cell(t.roots[0])
    return _known[boc]
def enter(v):
    if isinstance(v,tuple): return tuple(map(enter,v))
    if isinstance(v,TvmCell): return _cell(v.boc)
    if isinstance(v,TvmSlice): return _cell(v.boc).slice()
    return v
_c7={}
def prepare(code,data,stack,config,version):
    c=_cell(code)
    if version not in _c7:
        info=list(ctx.build_c7(ctx.Context(0,b'\x11'*32,1750000000,123456789012,{},b'',config,ctx.PreviousBlocks()))) if 0 else None
        info=list(enter(x) if not (isinstance(x,TvmCell) and x.boc==b'') else None for x in ctx.build_c7(ctx.Context(0,b'\x11'*32,1750000000,123456789012,{},b'',config,ctx.PreviousBlocks())))
        info[13]=None; info[6]=int.from_bytes(b'\x07'*32,'big')
        _c7[version]=info
    info=list(_c7[version]); info[10]=c
    return Machine(c.slice(),_cell(data),list(stack),(tuple(info),),decode,version=version,gas_limit=1000000,libraries=lambda h:None)
def show(code):
    from tonlake.api.explorer.words.assembly import disassemble
    print(disassemble(code))
