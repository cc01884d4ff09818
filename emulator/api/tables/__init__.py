"""The rows of the operation table, by what they are about."""
