"""The API: the /v1 routes over HTTP. It can be served with nothing above it in the package."""
