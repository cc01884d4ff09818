"""The wire: shapes of requests and responses, as pydantic models without behaviour."""
