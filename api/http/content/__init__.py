"""What of an answer is sent: cached or not, in which coding, or nothing but its tag."""
