"""Operations that TON Center does not have, under ``/api/x``, in the style of version 3."""
