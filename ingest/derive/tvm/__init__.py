"""Get-methods of contracts, run by the TVM of tonpy in processes of their own."""
