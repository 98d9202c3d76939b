"""Operations that TON Center does not have, under ``/api/x``, in the manner of version 3."""
