"""The domain: what the API is about, pure and synchronous.

Law: nothing here knows HTTP, asyncio, pydantic or MCP. The time and the ids are handed in. A
command goes in, events come out; a command that does not fit the state raises and changes nothing.
"""
